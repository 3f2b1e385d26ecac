package postgres

import (
	"cmp"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// What a dedupe key means for a message that is enqueued.

// claimKeys takes the dedupe keys of the messages, or answers with the messages that hold them. The
// second of two calls that want the same key waits here for the first.
func (e *enqueuing) claimKeys(messages []nixie.Message) error {
	first := map[dedupeKey]int{}
	var wanted []int
	for i := range messages {
		if own := (dedupeKey{e.fresh[i].queue, messages[i].DedupeKey}); own.key != "" {
			if _, again := first[own]; !again {
				first[own] = i
				wanted = append(wanted, i)
			}
		}
	}
	held := map[int]*holder{}
	for len(wanted) > 0 {
		got, err := e.insertKeys(wanted)
		if err != nil {
			return err
		}
		wanted = slices.DeleteFunc(wanted, func(i int) bool {
			own := dedupeKey{e.fresh[i].queue, e.fresh[i].dedupe}
			if has := e.keys[own]; has != nil && !got[e.fresh[i].pos] {
				held[i] = has
			}
			return got[e.fresh[i].pos] || e.keys[own] != nil
		})
	}
	return e.answerHeld(messages, first, held)
}

// openHolders opens the streams of the call together with those of the messages that may be
// replaced, and locks these messages.
func (e *enqueuing) openHolders(messages []nixie.Message, queues []int64, names []string) {
	owners, keys := eachOf(e.fresh, func(m *message) int64 { return m.queue }),
		eachOf(messages, func(m nixie.Message) string { return m.DedupeKey })
	e.openStreamsOf(texts()["streams_of_holders"], owners, keys, queues, names)
	e.lock(&e.locked.pending, "lock_holders.sql", owners, keys)
}

// insertKeys takes the keys that no message holds, and reads which messages hold the others. A key
// that was held and is free by now is in neither.
func (e *enqueuing) insertKeys(wanted []int) (got map[int64]bool, err error) {
	got = map[int64]bool{}
	var queues, positions []int64
	var keys []string
	for _, i := range wanted {
		queues, keys, positions = append(queues, e.fresh[i].queue), append(keys, e.fresh[i].dedupe), append(positions, e.fresh[i].pos)
	}
	e.read(func(r row) error {
		var pos int64
		err := r.Scan(&pos)
		got[pos] = true
		return err
	}, "claim_keys.sql", queues, keys, positions)
	e.readKeys("select * from unnest($1::int[], $2::text[])", queues, keys)
	return got, e.send()
}

// answerHeld answers messages whose key is held: by a message that exists, or by an earlier one of
// the call.
func (e *enqueuing) answerHeld(messages []nixie.Message, first map[dedupeKey]int, held map[int]*holder) error {
	for i := range messages {
		m, own := &messages[i], dedupeKey{e.fresh[i].queue, messages[i].DedupeKey}
		if own.key == "" {
			continue
		}
		switch has := held[first[own]]; {
		case has != nil:
			if !settles(m.OnConflict, has) {
				return &nixie.DuplicateError{Key: own.key, Existing: has.id}
			}
			e.receipts[i] = nixie.Receipt{ID: has.id, Duplicate: true, Different: has.hash != e.fresh[i].hash}
			if m.OnConflict == nixie.ReplaceExisting {
				if !e.locked.pending[has.pos] {
					return errRaced
				}
				e.record(e.fresh[i].queue, lifecycle.System, store.OnAmend, has.id, store.Replaced(has.hash))
				e.replace(has, m, e.fresh[i].hash)
			}
			e.fresh[i] = nil
		case first[own] != i:
			before := e.fresh[first[own]]
			if m.OnConflict == nixie.FailOnConflict {
				return &nixie.DuplicateError{Key: own.key, Existing: before.ID}
			}
			e.receipts[i] = nixie.Receipt{ID: before.ID, Duplicate: true, Different: before.hash != e.fresh[i].hash}
			if m.OnConflict == nixie.ReplaceExisting {
				e.record(before.queue, lifecycle.System, store.OnAmend, before.ID, store.Replaced(before.hash))
				replaceGiven(&messages[first[own]], m)
				before.hash = e.fresh[i].hash
			}
			e.fresh[i] = nil
		}
	}
	return nil
}

// replaceGiven gives a message of the call what a later one with its key says.
func replaceGiven(before, m *nixie.Message) {
	before.Body, before.Headers, before.Type, before.Key = m.Body, m.Headers, m.Type, cmp.Or(m.Key, before.Key)
}

// settles reports whether a taken key is an answer and not an error.
func settles(c nixie.Conflict, has *holder) bool {
	switch c {
	case nixie.ReturnExisting:
		return true
	case nixie.ReplaceExisting:
		return (has.state == lifecycle.Queued || has.state == lifecycle.Behind) && has.deliveries == 0
	}
	return false
}

// replace gives the holder of a key what a newer message says.
func (e *enqueuing) replace(has *holder, m *nixie.Message, hash nixie.Hash) {
	has.hash = hash
	e.run("replace_message.sql", has.pos, notNull(m.Body), hash[:], toJSON(len(m.Headers) == 0, m.Headers), m.Type, m.Key)
	e.run("update @.letter set type = $2 where pos = $1 and type <> $2", has.pos, m.Type)
}
