package postgres

import (
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/engine"
)

// Which messages hold the dedupe keys of those that are to be taken in.

// claimKeys holds dedupe keys for the messages that want them first, or reads which messages hold
// them. The second of two calls that want the same key waits here for the first.
func (v *verb) claimKeys(messages []nixie.Message) error {
	list, first := v.facts.New, map[dedupeKey]bool{}
	var wanted []int
	for i := range messages {
		if own := (dedupeKey{list[i].Queue.Number, messages[i].DedupeKey}); own.key != "" && !first[own] {
			first[own] = true
			wanted = append(wanted, i)
		}
	}
	for len(wanted) > 0 {
		got, err := v.insertKeys(messages, wanted)
		if err != nil {
			return err
		}
		wanted = slices.DeleteFunc(wanted, func(i int) bool {
			own := dedupeKey{list[i].Queue.Number, messages[i].DedupeKey}
			if got[list[i].Pos] {
				v.keys[own] = &holder{pos: list[i].Pos}
			}
			return v.keys[own] != nil
		})
	}
	return nil
}

// openHolders opens the streams of the call together with those of the messages that may be
// replaced, and locks these messages.
func (v *verb) openHolders(messages []nixie.Message, queues []int64, names []string) {
	owners, keys := eachOf(messages, func(m nixie.Message) int64 { return v.named[m.Queue].n }),
		eachOf(messages, func(m nixie.Message) string { return m.DedupeKey })
	v.openStreamsOf(texts()["streams_of_holders"], owners, keys, queues, names)
	v.lock(&v.locked.pending, "lock_holders.sql", owners, keys)
}

// insertKeys takes the keys that no message holds, and reads which messages hold the others. A key
// that was held and is free by now is in neither.
func (v *verb) insertKeys(messages []nixie.Message, wanted []int) (got map[int64]bool, err error) {
	got = map[int64]bool{}
	list := v.facts.New
	queues, keys := eachOf(wanted, func(i int) int64 { return list[i].Queue.Number }),
		eachOf(wanted, func(i int) string { return messages[i].DedupeKey })
	v.read(func(r row) error {
		var pos int64
		err := r.Scan(&pos)
		got[pos] = true
		return err
	}, "claim_keys.sql", queues, keys, eachOf(wanted, func(i int) int64 { return list[i].Pos }))
	v.readKeys("select * from unnest($1::int[], $2::text[])", queues, keys)
	return got, v.send()
}

// writeReplaced gives messages that wait what newer ones with their keys say. What was replaced is
// locked, unless it came meanwhile.
func (v *verb) writeReplaced(c *engine.Changes) error {
	for _, r := range c.Replaced {
		if !v.locked.pending[r.Pos] {
			return errRaced
		}
		m := r.By.Given
		v.run("replace_message.sql", r.Pos, notNull(m.Body), r.By.Hash[:], toJSON(len(m.Headers) == 0, m.Headers), m.Type, m.Key)
		v.run("update @.letter set type = $2 where pos = $1 and type <> $2", r.Pos, m.Type)
	}
	return nil
}
