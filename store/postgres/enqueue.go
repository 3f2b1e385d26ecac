package postgres

import (
	"context"
	"errors"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/engine"
)

// mayBePlain reports whether a message is claimed by range if its queue has no order.
func mayBePlain(m *nixie.Message) bool {
	return m.DedupeKey == "" && m.Priority == 0 && m.Delay <= 0 && m.NotBefore.IsZero()
}

// arePlain reports whether messages need no decision if their queues have no order.
func arePlain(messages []nixie.Message) bool {
	for i := range messages {
		if m := &messages[i]; !mayBePlain(m) || !m.ID.IsZero() {
			return false
		}
	}
	return true
}

// EnqueuePlain implements engine.Driver: it takes in a few messages without order, together with
// those of other calls.
func (d engineDriver) EnqueuePlain(ctx context.Context, messages []nixie.Message) ([]nixie.Receipt, error) {
	if len(messages) >= copyLeast {
		return nil, nil
	}
	if !arePlain(messages) {
		return nil, nil
	}
	receipts, err := d.enqueueInGroup(ctx, messages)
	if errors.Is(err, errNotInGroup) {
		return nil, nil
	}
	return receipts, err
}

// arriving has the streams of a call that takes messages in.
type arriving struct {
	streams    map[streamKey]streamRow
	firsts     map[streamKey]*message // the first on the ordered path of its stream
	concurrent bool                   // a transaction of a caller: other transactions go on in its streams
}

// loadNew locks and reads what messages meet that are to be taken in. Plain ones get the next
// positions, by a draw if they are copied. Others get theirs here, in the order of the call, and
// the keys that no other message holds are held for them.
func (v *verb) loadNew(messages []nixie.Message) error {
	v.flush() // what was written before comes first
	v.readExisting(messages)
	plain := arePlain(messages)
	if v.drawnPositions = (positions{}); plain && v.copies(len(messages), copyLeast) {
		v.draw(len(messages))
	}
	v.clock()
	if err := v.openQueues(queuesOf(messages)); err != nil {
		return err
	}
	v.made = nil // each gets a message, or the call fails
	if !v.callers {
		v.after = append(v.after, func() { v.store.known.learn(v.named) })
	}
	list := make([]engine.Arrival, len(messages))
	v.facts.New, v.arriving = list, arriving{}
	closed := false
	for i := range list {
		q := v.named[messages[i].Queue]
		list[i].Queue = v.queue(q)
		plain, closed = plain && !q.settings.Ordered(), closed || q.settings.Closed
	}
	if plain || closed { // the engine refuses a call to a closed queue
		return nil
	}
	if err := v.openForNew(messages); err != nil {
		return err
	}
	for i := range list {
		list[i].Pos = v.nextPosition()
	}
	return v.claimKeys(messages)
}

// openForNew locks and reads the streams of new messages, and those that they may replace.
func (v *verb) openForNew(messages []nixie.Message) error {
	v.arriving = arriving{streams: map[streamKey]streamRow{}, concurrent: v.callers}
	a, streams, replaces := &v.arriving, map[streamKey]bool{}, false
	for i := range messages {
		m, q := &messages[i], v.named[messages[i].Queue]
		if m.Stream != "" && q.settings.Ordered() {
			streams[streamKey{q.n, m.Stream}] = true
			a.concurrent = a.concurrent && goesOrdered(q, m)
		}
		replaces = replaces || m.OnConflict == nixie.ReplaceExisting
	}
	a.concurrent = a.concurrent && !replaces
	read := func(own streamKey, s streamRow) { a.streams[own] = s }
	queues, names := streamArgs(streams)
	switch {
	case replaces:
		v.openHolders(messages, queues, names)
	case len(streams) == 0:
	case a.concurrent:
		v.addConcurrently(read, queues, names)
	default:
		v.openStreams(read, "for update", "select * from unnest($1::int[], $2::text[])", queues, names)
	}
	v.draw(len(messages)) // positions in a stream are drawn under its lock
	return v.send()
}

// queuesOf returns the names of the queues of messages, some of them perhaps twice.
func queuesOf(messages []nixie.Message) (names []string) {
	for i := range messages {
		if n := len(names); n == 0 || names[n-1] != messages[i].Queue {
			names = append(names, messages[i].Queue)
		}
	}
	return names
}

// readExisting reads which of the given IDs are taken.
func (v *verb) readExisting(messages []nixie.Message) {
	var given []nixie.ID
	for i := range messages {
		if id := messages[i].ID; !id.IsZero() {
			given = append(given, id)
		}
	}
	if len(given) == 0 {
		return
	}
	v.facts.IDs = map[nixie.ID]bool{}
	v.read(func(r row) error {
		var id nixie.ID
		err := r.Scan((*idColumn)(&id))
		v.facts.IDs[id] = true
		return err
	}, "select id from @.message where pos"+which().ids, uuids(given))
}

// writeNew takes messages in. Those that claims by range take have no row of pending.
func (v *verb) writeNew(c *engine.Changes) {
	if len(c.New) == 0 {
		return
	}
	rows := make([]messageRow, len(c.New))
	var list []*message
	for i, m := range c.New {
		given := m.Given
		row := messageRow{id: m.ID, pos: m.Pos, queue: m.Queue.Number, enqueued: v.now, hash: m.Hash, given: given,
			byRange: mayBePlain(given) && !m.Queue.Settings.Ordered(), numbered: given.ID.IsZero() && v.numbers(m.Pos)}
		if !m.Ordered {
			v.comes(m.Queue.Name, m.Due)
		}
		if !row.byRange {
			at := v.arrives(m)
			if m.Ordered {
				v.follow(at, given)
			}
			row.orderedStream = at.orderedStream
			list = append(list, at)
		}
		rows[i] = row
	}
	v.insertMessages(rows)
	v.giveTokens()
	for _, m := range list {
		if m.in == nowhere {
			v.touch(m)
		}
	}
}

// arrives returns a new message that may get a row of pending.
func (v *verb) arrives(m *engine.Arrival) *message {
	given := m.Given
	return &message{
		Message: m.Message(), pos: m.Pos, queuePos: m.Pos, queue: m.Queue.Number, q: v.queues[m.Queue.Number],
		mtype: given.Type, key: given.Key, stream: given.Stream, dedupe: given.DedupeKey, priority: given.Priority, hash: m.Hash,
	}
}
