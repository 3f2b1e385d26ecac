package sqlite

import (
	"encoding/hex"
	"encoding/json"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// confirmOnItsWay resolves a letter whose message a foreign broker took although it was queued or
// leased here. The message must not run here as well.
func (t *tx) confirmOnItsWay(l *letterRow, r *store.Resolution) error {
	st, err := t.stateOf(l.pos)
	if err != nil {
		return err
	}
	if st.state != lifecycle.Queued && st.state != lifecycle.Leased {
		return nixie.Errorf(nixie.CodeInternal, "letter %s is %s and its message has ended: run nixie verify", l.ID, l.Status)
	}
	h, err := t.anyHold(l.pos, st)
	if err != nil {
		return err
	}
	was := *l
	if _, err := l.Resolve(&h.Message, r, false, t.now); err != nil {
		return err
	}
	if err := t.end(h, brokerTook); err != nil {
		return err
	}
	if err := t.ends(l.pos, lifecycle.Ending{Operation: was.Operation, On: lifecycle.Overtaken(r)}); err != nil {
		return err
	}
	return t.moved(&was, l, r)
}

const brokerTook = "a broker took it"

func (q *queueRow) handedOver() {
	q.ended[lifecycle.Dead]--
	q.ended[lifecycle.Canceled]++
	q.dirty = true
}

// handOver writes that a broker took a dead message: its next generation ends at once.
func (t *tx) handOver(l *letterRow, m *deadMessage) error {
	if n, err := t.change(sqlText("hand_over_message"), m.State, m.Ended, brokerTook, l.pos, lifecycle.Dead); err != nil || n != 1 {
		return orDefect(err, "message of letter %s is not dead: run nixie verify", l.ID)
	}
	m.q.handedOver()
	return t.freeKeyOf(l.pos, m.State)
}

// confirmMany confirms many letters of one operation with few statements: those that are open, hold
// up no message and have no dedupe key. It returns them for the audit; the caller confirms the
// others one by one.
func (t *tx) confirmMany(resolutions []store.Resolution, errs []error) (map[nixie.ID]*letterRow, error) {
	all := alike(resolutions, errs)
	if len(all) < confirmOnce {
		return nil, nil
	}
	by := &resolutions[0]
	found, operation, err := t.confirmable(all, by.Operation)
	if err != nil || len(found) < confirmOnce {
		return nil, err
	}
	var positions []int64
	facets := map[int64][]int64{} // positions of letters by their new facet
	for _, l := range found {
		facet, err := t.moveFacet(l, nixie.StatusResolved, false)
		if err != nil {
			return nil, err
		}
		positions = append(positions, l.pos)
		facets[facet] = append(facets[facet], l.pos)
	}
	if err := t.handOverAll(found, positions); err != nil {
		return nil, err
	}
	for facet, positions := range facets {
		if err := t.run(sqlText("letters_resolved"), facet, string(nixie.StatusResolved), t.now, sumOf(""), by.Operation,
			listed(positions)); err != nil {
			return nil, err
		}
	}
	if err := t.run(sqlText("items_confirmed"), t.now, operation, listed(positions)); err != nil {
		return nil, err
	}
	return found, nil
}

// confirmOnce is the number of letters from which confirmMany is cheaper.
const confirmOnce = 8

// alike returns the letters of resolutions that all confirm for one operation, each letter once. It
// returns none if one resolution differs, because their order might matter then.
func alike(resolutions []store.Resolution, errs []error) (ids []nixie.ID) {
	by := &resolutions[0]
	seen := map[nixie.ID]bool{}
	for i := range resolutions {
		r := &resolutions[i]
		if r.Event != store.OnConfirm || r.Operation.IsZero() || r.Operation != by.Operation || r.Actor != by.Actor ||
			r.Reason != by.Reason || r.Group != "" || seen[r.Letter] {
			return nil
		}
		seen[r.Letter] = true
		if errs[i] == nil && r.Skip == "" {
			ids = append(ids, r.Letter)
		}
	}
	return ids
}

// confirmable reads those letters that are pending items of an operation and that confirmMany can
// handle.
func (t *tx) confirmable(ids []nixie.ID, operation nixie.ID) (found map[nixie.ID]*letterRow, n int64, err error) {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = hex.EncodeToString(id[:])
	}
	data, err := json.Marshal(texts)
	if err != nil {
		return nil, 0, err
	}
	if n, err = t.number("select n from operation where id = ?", operation); err != nil {
		return nil, 0, err
	}
	found = make(map[nixie.ID]*letterRow, len(ids))
	err = t.each(sqlText("confirmable_letters"), func(row rows) error {
		l := &letterRow{pos: row.ColumnInt64(0), queue: row.ColumnInt64(1), facet: row.ColumnInt64(4)}
		l.ID, l.Status, l.Died = columnID(row, 2), nixie.Status(row.ColumnText(3)), row.ColumnInt64(5)
		found[l.ID] = l
		return nil
	}, string(data), n, lifecycle.Dead, string(nixie.StatusOpen), string(nixie.StatusReview))
	return found, n, err
}

// handOverAll does what handOver does, for messages without keys and streams.
func (t *tx) handOverAll(letters map[nixie.ID]*letterRow, positions []int64) error {
	if err := t.run(sqlText("hand_over_messages"), lifecycle.Canceled, t.now, brokerTook, listed(positions)); err != nil {
		return err
	}
	for _, l := range letters {
		q, err := t.queueAt(l.pos)
		if err != nil {
			return err
		}
		q.handedOver()
	}
	return nil
}

// listed returns numbers as JSON.
func listed(numbers []int64) string {
	data, _ := json.Marshal(numbers) // numbers always encode
	return string(data)
}
