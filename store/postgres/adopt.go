package postgres

import (
	"cmp"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/engine"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// given has what letters from elsewhere say of themselves.
type given struct {
	ids, earlier          []nixie.ID
	origins, queues, keys []string
}

func givenBy(letters []*nixie.Letter) (g given) {
	for _, l := range letters {
		g.ids, g.queues = append(g.ids, l.ID, l.Message.ID), append(g.queues, l.Message.Queue)
		g.origins = append(g.origins, store.OriginTexts(l.Message.Origin)...)
		if o := l.Message.Origin; o != nil && !o.Earlier.IsZero() {
			g.earlier = append(g.earlier, o.Earlier)
		}
		if l.Message.DedupeKey != "" {
			g.keys = append(g.keys, l.Message.DedupeKey)
		}
	}
	return g
}

// loadGiven reads what is here of letters from elsewhere. It locks the letters that have their IDs,
// and the keys that they want.
func (v *verb) loadGiven(w *engine.Want) error {
	g := givenBy(w.Given)
	if err := v.openQueues(g.queues); err != nil {
		return err
	}
	numbers := make([]int64, 0, len(v.named))
	for _, q := range v.named {
		v.queue(q)
		numbers = append(numbers, q.n)
	}
	slices.Sort(numbers)
	here := "c.pos = any(array(" + texts()["messages_with"] + " union all " + texts()["letters_with"] + ")) or c.origin = any($2::text[])"
	list := uuids(g.ids)
	// A letter that comes back leaves its own stream.
	v.openStreamsOf("select s.queue, s.name from @.letter l join @.stream s on s.n = l.stream where l.pos"+which().letters, list)
	v.lock(&v.locked.letters, "select pos from @.letter where pos"+which().letters+" order by pos for update", list)
	v.openKeys(texts()["keys_to_adopt"], list, numbers, g.keys)
	v.clock()
	v.readMessages(here, list, g.origins)
	v.readLetters("pos in (select c.pos from @.message c where "+here+")", list, g.origins)
	lived := v.readLives(list)
	byOrigin := map[string]int64{}
	v.read(func(r row) error {
		var pos int64
		var origin string
		err := r.Scan(&pos, &origin)
		byOrigin[origin] = pos
		return err
	}, "select pos, origin from @.message where origin = any($1)", g.origins)
	v.facts.Earlier = map[nixie.ID]engine.ItemEnd{}
	if len(g.earlier) > 0 {
		v.read(func(r row) error {
			var id nixie.ID
			var sent engine.ItemEnd
			err := r.Scan((*idColumn)(&id), &sent.Letter, (*idColumn)(&sent.Operation))
			v.facts.Earlier[id] = sent
			return err
		}, "select id, pos, operation from @.letter where pos"+which().letters, uuids(g.earlier))
	}
	v.draw(len(w.Given))
	if err := v.send(); err != nil {
		return err
	}
	v.knowGiven(byOrigin, lived)
	return nil
}

// knowGiven tells the engine which letters and messages are here. Only a locked letter may move.
func (v *verb) knowGiven(byOrigin map[string]int64, lived map[int64]int) {
	f := v.facts
	f.ByLetter, f.ByMessage, f.ByOrigin = map[nixie.ID]*engine.Known{}, map[nixie.ID]*engine.Known{}, map[string]*engine.Known{}
	for id, m := range v.byID {
		k := &engine.Known{Message: id, Hash: m.hash}
		f.ByMessage[id] = k
		l := m.letter
		if l == nil {
			continue
		}
		k.Letter = l.ID
		f.ByLetter[l.ID] = k
		if v.locked.letters[l.pos] {
			f.Letters[l.ID] = l.fact()
			f.Letters[l.ID].Message = v.message(m, nil)
			f.Letters[l.ID].Message.Lived = lived[m.pos]
		}
	}
	for origin, pos := range byOrigin {
		if m := v.rows[pos]; m != nil {
			f.ByOrigin[origin] = f.ByMessage[m.ID]
		}
	}
}

// readLives reads the last generations in the histories of letters.
func (v *verb) readLives(ids [][16]byte) map[int64]int {
	v.readHeads("pos"+which().letters, ids)
	lived := map[int64]int{}
	v.read(func(r row) error {
		var pos int64
		var doc string
		err := r.Scan(&pos, &doc)
		if f, bad := decodeFailure(doc); bad == nil { // one that cannot be read says nothing
			lived[pos] = max(lived[pos], f.Generation)
		}
		return err
	}, "select pos, doc from @.history where pos"+which().letters, ids)
	return lived
}

// Append implements engine.Tx.
func (v *verb) Append(*engine.Queue) int64 {
	if !v.drawn() {
		return 0
	}
	return v.nextPosition()
}

// writeAdopted takes in letters from elsewhere.
func (v *verb) writeAdopted(c *engine.Changes) {
	if len(c.Adopted) == 0 {
		return
	}
	rows := make([]messageRow, len(c.Adopted))
	for i, w := range c.Adopted {
		m, given := w.Letter.Message, &w.Given.Message
		at := &message{Message: *m.Message, pos: m.Pos, queue: m.Queue.Number, q: v.queues[m.Queue.Number], hash: m.Hash,
			mtype: given.Type, key: given.Key, stream: given.Stream, priority: given.Priority, dedupe: given.DedupeKey}
		v.rows[at.pos], v.byID[at.ID] = at, at
		v.writeHistory(at, w.Given)
		v.touchLetter(v.letterOf(w.Letter))
		v.touch(at)
		enqueued := cmp.Or(lifecycle.Nanos(given.EnqueuedAt), v.now)
		rows[i] = messageRow{id: m.ID, pos: m.Pos, queue: at.queue, enqueued: enqueued, hash: m.Hash, given: given}
	}
	v.insertMessages(rows)
	for _, w := range c.Adopted {
		for i := range w.Given.Notes {
			n := &w.Given.Notes[i]
			v.run("insert into @.note (letter, ordinal, at, by, text) values ($1, $2, $3, $4, $5)", w.Letter.Pos, i, lifecycle.Nanos(n.At),
				plain(n.By), plain(n.Text))
		}
	}
}

// writeHistory keeps failures under ordinals that leave a gap for those that were dropped.
func (v *verb) writeHistory(m *message, l *nixie.Letter) {
	for i := range l.History {
		f := &l.History[i]
		m.ordinal = int64(i) + 1
		if i > 0 || len(l.History) == 1 {
			m.ordinal += int64(l.HistoryDropped)
		}
		v.keepFailure(m, f, f.Steps, m.ordinal, lifecycle.Nanos(f.FailedAt), f.Decision)
		m.reason = string(f.Reason)
	}
}
