package sqlite

import (
	"context"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Adopt implements store.DeadLetters.
func (s *Store) Adopt(ctx context.Context, letters []nixie.Letter, actor, reason string) ([]nixie.Receipt, []error) {
	receipts, errs := make([]nixie.Receipt, len(letters)), make([]error, len(letters))
	if len(letters) == 0 {
		return receipts, errs
	}
	size, refused, err := store.CheckAdoption(letters, actor, reason)
	if err != nil {
		return receipts, all(errs, err)
	}
	if err := s.space.check(s.now(), size); err != nil {
		return receipts, all(errs, err)
	}
	err = s.write(ctx, size, func(t *tx) error {
		clear(receipts)
		copy(errs, refused)
		for i := range letters {
			if errs[i] != nil {
				continue
			}
			r, err := t.adopt(&letters[i], actor, reason)
			if err != nil && !answers(err) {
				return err
			}
			receipts[i], errs[i] = r, err
		}
		return nil
	})
	if err != nil {
		return receipts, all(errs, err)
	}
	return receipts, errs
}

// adopt writes one letter from elsewhere, or returns the receipt of the one that is here. Every
// refusal comes before the first write.
func (t *tx) adopt(l *nixie.Letter, actor, reason string) (nixie.Receipt, error) {
	if old, err := t.cameBack(l); old != nil || err != nil {
		if err == nil {
			err = t.dieAgain(old, l, actor, reason)
		}
		return nixie.Receipt{ID: l.ID}, err
	}
	m, hash := &l.Message, nixie.HashBody(l.Message.Body)
	there, err := t.known(l, hash)
	if there != nil || err != nil {
		return *orZero(there), err
	}
	q, err := t.openQueue(m.Queue)
	if err != nil {
		return nixie.Receipt{}, err
	}
	if q.last >= maxSeq {
		return nixie.Receipt{}, nixie.Errorf(nixie.CodeLimit,
			"queue %s has taken %d messages, the limit: use another queue", q.name, q.last)
	}
	pos := q.n<<seqBits | (q.last + 1)
	if width(q.settings.DedupeScope) > 0 {
		if err := t.takeFreeKey(q, m.DedupeKey, pos); err != nil {
			return nixie.Receipt{}, err
		}
	}
	id := l.ID
	if id.IsZero() {
		id = t.store.ids.New(lifecycle.Moment(t.now))
	}
	for _, write := range [...]func() error{
		func() error { return t.adoptMessage(pos, m, hash) },
		func() error { return t.adoptEnd(pos, l) },
		func() error { return t.adoptHistory(pos, q.n, l) },
		func() error { return t.adoptLetter(pos, q.n, id, l) },
		func() error { return t.earlierEnds(l) },
	} {
		if err := write(); err != nil {
			return nixie.Receipt{}, err
		}
	}
	q.last++
	q.ended[lifecycle.Dead]++
	q.largest = max(q.largest, int64(len(m.Body)))
	if q.fresh == 0 {
		q.cursor = q.last // no new message lies before it, so claims start here
	}
	q.dirty = true
	for _, on := range store.Adoption(l.Status) {
		if err := t.audit(q.n, actor, on, id, reason); err != nil {
			return nixie.Receipt{}, err
		}
	}
	return nixie.Receipt{ID: id}, nil
}

// known finds a letter or message that was adopted before.
func (t *tx) known(l *nixie.Letter, hash nixie.Hash) (*nixie.Receipt, error) {
	type row struct {
		letter, message nixie.ID
		hash            nixie.Hash
	}
	find := func(where string, arg any) (found *row, err error) {
		err = t.each("select l.id, m.id, m.hash from message m left join letter l on l.pos = m.pos where "+where, func(r rows) error {
			found = &row{letter: columnID(r, 0), message: columnID(r, 1)}
			r.ColumnBytes(2, found.hash[:])
			return nil
		}, arg)
		return found, err
	}
	there, err := find("m.pos = (select pos from letter where id = ?)", l.ID)
	if err != nil {
		return nil, err
	}
	if id := l.Message.ID; there != nil && !id.IsZero() && id != there.message {
		return nil, nixie.Errorf(nixie.CodeConflict,
			"letter %s is here and belongs to message %s: it cannot be that of %s", l.ID, there.message, id)
	}
	if there == nil {
		if there, err = find("m.id = ?", l.Message.ID); err != nil {
			return nil, err
		}
		if there != nil && !there.letter.IsZero() && !l.ID.IsZero() {
			return nil, nixie.Errorf(nixie.CodeConflict,
				"message %s is here and has letter %s: it cannot have %s", there.message, there.letter, l.ID)
		}
	}
	for _, origin := range store.OriginTexts(l.Message.Origin) {
		if there != nil {
			break
		}
		if there, err = find("m.origin = ? limit 1", origin); err != nil {
			return nil, err
		}
	}
	if there == nil {
		return nil, nil
	}
	r := nixie.Receipt{ID: there.letter, Duplicate: true, Different: there.hash != hash}
	if r.ID.IsZero() {
		r.ID = there.message
	}
	return &r, nil
}

// takeFreeKey takes a dedupe key for the message at pos. It fails when another message holds the
// key.
func (t *tx) takeFreeKey(q *queueRow, key string, pos int64) error {
	if key == "" {
		return nil
	}
	added, err := t.change("insert into dedupe (queue, key, pos) values (?, ?, ?) on conflict do nothing", q.n, key, pos)
	if err != nil || added == 1 {
		return err
	}
	var at int64
	var holder nixie.ID
	if err := t.each("select m.pos, m.id from dedupe d join message m on m.pos = d.pos where d.queue = ? and d.key = ?",
		func(r rows) error {
			at, holder = r.ColumnInt64(0), columnID(r, 1)
			return nil
		}, q.n, key); err != nil || at == pos {
		return err
	}
	return &nixie.DuplicateError{Key: key, Existing: holder}
}

func (t *tx) adoptMessage(pos int64, m *nixie.Message, hash nixie.Hash) error {
	id := m.ID
	if id.IsZero() {
		id = t.store.ids.New(lifecycle.Moment(t.now))
	}
	if err := t.insertMessage(pos, id, true, m, hash); err != nil {
		return err
	}
	if m.EnqueuedAt.IsZero() {
		return nil
	}
	return t.run("update message set enqueued = ? where pos = ?", lifecycle.Nanos(m.EnqueuedAt), pos)
}

func (t *tx) adoptEnd(pos int64, l *nixie.Letter) error {
	m, ended := &l.Message, l.Message.EndedAt
	if ended.IsZero() {
		ended = l.DiedAt
	}
	return t.run(sqlText("adopt_log"),
		pos, lifecycle.Dead, lifecycle.Nanos(ended), lifecycle.Nanos(m.FirstReceivedAt), m.Attempts, m.Deliveries, m.Crashes,
		max(m.Generation, 1), m.Redrives, m.Deliveries,
		jsonText(len(m.Steps) == 0, m.Steps), m.OrderGap, lifecycle.Nanos(m.RedrivenAt))
}

// adoptHistory writes the failures. Their ordinals leave a gap for those that were dropped.
func (t *tx) adoptHistory(pos, queue int64, l *nixie.Letter) error {
	dropped := int64(l.HistoryDropped)
	for i := range l.History {
		f := &l.History[i]
		kept := failureDoc{*f, f.Took}
		kept.Text, kept.Attachments = "", nil
		doc, err := kept.json()
		if err != nil {
			return err
		}
		ordinal := int64(i) + 1
		if i > 0 || len(l.History) == 1 {
			ordinal += dropped
		}
		if err := t.insertFailure(pos, queue, ordinal, lifecycle.Nanos(f.FailedAt), f, doc, f.Decision); err != nil {
			return err
		}
	}
	return nil
}

// earlierEnds writes the outcomes of the redrives by which an earlier letter of the same job went
// to a broker.
func (t *tx) earlierEnds(l *nixie.Letter) error {
	if o := l.Message.Origin; o == nil || o.Earlier.IsZero() {
		return nil
	}
	earlier, err := t.letter(sqlText("letter_with_id"), l.Message.Origin.Earlier)
	if err != nil || earlier == nil {
		return err
	}
	return t.ends(earlier.pos, lifecycle.Elsewhere(earlier.Operation, l, true)...)
}

func (t *tx) adoptLetter(pos, queue int64, id nixie.ID, l *nixie.Letter) error {
	last := ""
	if n := len(l.History); n > 0 {
		last = l.History[n-1].Text
	}
	m := &l.Message
	facet, err := t.addToFacet(&facet{
		queue: queue, mtype: m.Type, status: l.Status, cause: l.Cause, class: l.Class, reason: l.Reason, signature: l.Signature,
		fingerprint: l.Fingerprint,
		redrivable:  l.Redrivable, needsReview: l.NeedsReview, redrives: m.Redrives, attempts: m.Attempts, crashes: m.Crashes,
	}, lifecycle.Nanos(l.DiedAt), 1)
	if err != nil {
		return err
	}
	if err := t.run(sqlText("adopt_letter"),
		id, pos, facet, queue, string(l.Status), string(l.Cause), string(l.Class), string(l.Reason), l.Signature, l.Fingerprint,
		l.Redrivable, l.NeedsReview, l.Rule, last,
		lifecycle.Nanos(l.FirstFailedAt), lifecycle.Nanos(l.LastFailedAt), lifecycle.Nanos(l.DiedAt), idOrNull(l.Operation), l.Note,
		max(l.Revision, 1), text(m.Stream), sumOf(l.Rule), sumOf(l.Note)); err != nil {
		return err
	}
	for i := range l.Notes {
		n := &l.Notes[i]
		if err := t.run(sqlText("adopt_note"), i, lifecycle.Nanos(n.At), n.By, n.Text, sumOf(n.By, n.Text), id); err != nil {
			return err
		}
	}
	return nil
}
