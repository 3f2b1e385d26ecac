package postgres

import (
	"context"
	"fmt"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/engine"
)

// engineDriver keeps facts for the engine. Load sends the locks and the reads of a call together.
// Write leaves what was decided to flush, which sends it with the commit.
type engineDriver struct{ *Store }

// Update implements engine.Driver.
func (d engineDriver) Update(ctx context.Context, how engine.How, f func(engine.Tx) error) error {
	over := d.pool
	if how.Renews {
		over = d.own
	}
	err := d.writeOver(ctx, over, func(t *tx) error {
		t.claims = how.Claims
		return f(t.verb())
	})
	if err == nil && how.Letters > 0 {
		d.changed(ctx, how.Letters)
	}
	return err
}

// verb returns the engine's view of the transaction.
func (t *tx) verb() *verb { return &verb{tx: t} }

// verbs are the methods of a store that the engine has. The others of this package decide
// themselves.
type verbs = engine.Engine

// verb is one call of the engine in a transaction.
type verb struct {
	*tx
	facts    *engine.Facts
	about    map[int64]*engine.Message // by position
	numbered map[nixie.ID]bool         // new letters whose IDs say their positions
	arriving
	pruning *pruning
}

// Load implements engine.Tx.
func (v *verb) Load(w *engine.Want) (*engine.Facts, error) {
	v.facts = &engine.Facts{Queues: map[string]*engine.Queue{}, Messages: map[nixie.ID]*engine.Message{},
		Letters: map[nixie.ID]*engine.Letter{}, Keys: map[engine.Key]engine.Holder{}, Operations: map[nixie.ID]store.Event{},
		Items: map[engine.ItemKey]*engine.Item{}}
	if err := v.load(w); err != nil {
		return nil, err
	}
	v.facts.Now, v.facts.Wall, v.facts.Due = v.now, v.now, same
	for own, has := range v.keys {
		v.facts.Keys[engine.Key{Queue: own.queue, Key: own.key}] = engine.Holder{Pos: has.pos, ID: has.id, Hash: has.hash,
			State: has.state, Deliveries: has.deliveries}
	}
	return v.facts, nil
}

func same[T any](v T) T { return v }

// load locks and reads what a call is about.
func (v *verb) load(w *engine.Want) error {
	switch {
	case w.Pruning:
		return v.loadPruning()
	case w.From > 0:
		v.loadNext(w.From)
		return nil
	case len(w.New) > 0:
		return v.loadNew(w.New)
	case len(w.Letters) > 0:
		return v.loadLetters(w)
	case w.Queued != nil || len(w.Messages) > 0:
		return v.loadMessages(w)
	case len(w.Leases) > 0:
		return v.loadLeases(w)
	case w.Over:
		return v.loadOver(w.Gone)
	case len(w.Given) > 0:
		return v.loadGiven(w)
	case w.Stream != nil:
		return v.loadStream(w.Stream)
	case w.Documents != nil:
		return v.loadDocuments(w)
	}
	return v.loadQueues(w)
}

// loadLetters locks and reads letters.
func (v *verb) loadLetters(w *engine.Want) error {
	v.about = map[int64]*engine.Message{}
	list := uuids(w.Letters)
	v.holdLetters(list, w.Rejoins)
	if len(w.Operations) > 0 {
		v.readItems(w.Operations, list)
	}
	v.readAbout(list, w.Headers)
	selected := map[nixie.ID]bool{}
	if w.Selected {
		v.readSelected(list, selected)
	}
	v.draw(len(w.Letters))
	if err := v.send(); err != nil {
		return err
	}
	if err := v.checkLocks(); err != nil {
		return err
	}
	for id, l := range v.letters {
		fact := l.fact()
		fact.Selected = selected[id]
		if l.m != nil {
			fact.Message = v.message(l.m, v.about[l.pos])
		}
		v.facts.Letters[id] = fact
	}
	return nil
}

// loadMessages locks and reads messages, with the letters that they have.
func (v *verb) loadMessages(w *engine.Want) error {
	ids := w.Messages
	if w.Queued != nil {
		if err := v.findQueued(w.Queued); err != nil {
			return err
		}
		ids = v.facts.Found
	}
	if len(ids) == 0 {
		return nil
	}
	if err := v.holdToAmend(ids, w); err != nil {
		return err
	}
	for id, m := range v.byID {
		v.facts.Messages[id] = v.withLetter(m, nil)
	}
	if to := v.named[w.Into]; to != nil {
		v.queue(to)
	}
	return nil
}

// loadQueues reads the queues that a call names, and the time.
func (v *verb) loadQueues(w *engine.Want) (err error) {
	made := false
	switch {
	case w.Adjust != "":
		made, err = v.lockQueue(w.Adjust)
	case w.Others != "":
		v.facts.Others, err = v.otherSettings(w.Others)
	default:
		v.clock()
		if w.Queue != "" {
			v.readQueues("name = $1", w.Queue)
		}
		err = v.send()
	}
	for _, q := range v.named {
		v.queue(q).Made = made
	}
	return err
}

// queue returns a queue as the engine knows it.
func (v *verb) queue(q *queueRow) *engine.Queue {
	fact := v.facts.Queues[q.name]
	if fact == nil || fact.Settings != &q.settings { // it was read again
		fact = &engine.Queue{Number: q.n, Name: q.name, Settings: &q.settings}
		v.facts.Queues[q.name] = fact
	}
	return fact
}

// fact returns a letter as the engine changes it. It notes whether the letter was in its stream.
func (l *letterRow) fact() *engine.Letter {
	l.was = l.InStream
	return &engine.Letter{Letter: &l.Letter, Pos: l.pos, Queue: l.queue, Notes: l.notes}
}

// withLetter returns a message and the letter that it has.
func (v *verb) withLetter(m *message, into *engine.Message) *engine.Message {
	fact := v.message(m, into)
	if m.letter != nil {
		fact.Letter = m.letter.fact()
		fact.Letter.Message = fact
	}
	return fact
}

// message returns a message as the engine changes it; about has what readAbout read of it, if it
// did.
func (v *verb) message(m *message, about *engine.Message) *engine.Message {
	if about == nil {
		about = &engine.Message{}
	}
	about.Message, about.Pos, about.Stream, about.Dedupe = &m.Message, m.pos, m.stream, m.dedupe
	about.Expires, about.Hash, about.Note = m.expires, m.hash, m.note
	about.Queue = v.queue(m.q)
	about.First, about.Last = m.failures()
	return about
}

// holdToAmend locks and reads messages and the queue into which they may go.
func (v *verb) holdToAmend(ids []nixie.ID, w *engine.Want) error {
	if w.Into == "" {
		return v.hold(ids, w.Failures)
	}
	if err := v.openQueues([]string{w.Into}); err != nil {
		return err
	}
	list, to := uuids(ids), v.named[w.Into]
	v.lockRanges(list)
	v.openStreamsOf(texts()["streams_to_move"], list, to.n, to.settings.Ordered())
	v.holdRest(which().ids, list, w.Failures)
	v.openKeys(texts()["keys_to_move"], list, to.n)
	v.draw(2 * len(ids))
	if err := v.send(); err != nil {
		return err
	}
	return v.checkLocks()
}

// findQueued finds queued messages, without a lock.
func (v *verb) findQueued(w *engine.Queued) error {
	where := messageWhere(w.Filter, v.now)
	where.add("c.pos in ("+asked("waiting_messages")+")", w.Queue.Number, w.Queue.Number, w.Queue.Number)
	v.read(func(r row) error {
		var id nixie.ID
		err := r.Scan((*idColumn)(&id))
		v.facts.Found = append(v.facts.Found, id)
		return err
	}, fmt.Sprintf("select c.id from @.current c where %s order by c.queue_pos limit %d", where, w.Most), where.args...)
	return v.send()
}

// holdLetters locks letters, with all that belongs to them, and reads them. It opens the streams
// that their messages may be appended to; with rejoins it also locks the ordered paths of these.
func (v *verb) holdLetters(list [][16]byte, rejoins bool) {
	v.lockQueues("n in (select queue from @.letter where pos"+which().letters+")", list)
	if rejoins {
		v.lock(&v.locked.cursors, "lock_cursors_of_letters.sql", list)
	}
	// Streams are made for messages that may be appended to them.
	v.openStreamsOf(texts()["streams_to_resolve"], list)
	v.lock(&v.locked.pending, "select pos from @.pending where pos"+which().letters+" order by pos for update", list)
	v.lock(&v.locked.letters, "select pos from @.letter where pos"+which().letters+" order by pos for update", list)
	v.openKeys("select queue, dedupe from @.message where pos"+which().letters+" and dedupe is not null", list)
	v.clock()
	v.readMessages("c.pos"+which().letters, list)
	if rejoins {
		v.readMessages("c.pos = any(array("+texts()["firsts_without_row"]+"))", list)
	}
	v.readLetters("pos"+which().letters, list)
}

// readAbout reads of the messages of letters what only these verbs want: where a body lies that the
// message does not have, and with headers those.
func (v *verb) readAbout(list [][16]byte, headers bool) {
	v.read(func(row row) error {
		about := &engine.Message{}
		var pos int64
		var origin, text string
		if err := row.Scan(&pos, &origin, &text); err != nil {
			return err
		}
		about.BodyAt = store.BodyAt(origin)
		if err := fromJSON(text, &about.Headers); err != nil {
			about.Unread = nixie.Errorf(nixie.CodeInternal, "headers of the message at %d cannot be read: %w", pos, err)
		}
		v.about[pos] = about
		return nil
	}, "read_about.sql", list, headers)
}

// readItems locks and reads the items of operations about the letters.
func (v *verb) readItems(operations []nixie.ID, letters [][16]byte) {
	v.read(func(row row) error {
		var id nixie.ID
		var event store.Event
		err := row.Scan((*idColumn)(&id), &event)
		v.facts.Operations[id] = event
		return err
	}, "select id, event from @.operation where id = any($1)", uuids(operations))
	v.read(func(row row) error {
		var at engine.ItemKey
		it := &engine.Item{}
		err := row.Scan((*idColumn)(&at.Operation), (*idColumn)(&at.Letter), &it.State, &it.Planned)
		v.facts.Items[at] = it
		return err
	}, "lock_items.sql", letters, uuids(operations))
}

// readSelected reads which letters operations are yet to move.
func (v *verb) readSelected(letters [][16]byte, into map[nixie.ID]bool) {
	v.read(func(row row) error {
		var id nixie.ID
		err := row.Scan((*idColumn)(&id))
		into[id] = true
		return err
	}, "select l.id from @.letter l join @.item i on i.letter = l.pos where i.state = 'pending' and l.pos"+which().letters, letters)
}
