package kafka

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The offset to commit is that of the first unfinished record, in any order of finishing.
func TestPrefix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := prefix{next: -1}
		type known struct {
			offset, position int64
			done             bool
		}
		var all []known
		offset := int64(0)
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				offset += rapid.Int64Range(1, 3).Draw(t, "gap")
				all = append(all, known{offset, p.add(offset, 7), false})
			},
			"finish": func(t *rapid.T) {
				if len(all) == 0 {
					t.Skip("nothing is open")
				}
				k := &all[rapid.IntRange(0, len(all)-1).Draw(t, "which")]
				before := p.next
				if moved := p.finish(k.position); moved != (p.next != before) {
					t.Fatalf("moved %v, next %d → %d", moved, before, p.next)
				}
				k.done = true
			},
			"": func(t *rapid.T) {
				next, open := int64(-1), 0
				if n := slices.IndexFunc(all, func(k known) bool { return !k.done }); n != 0 && len(all) > 0 {
					if n < 0 {
						n = len(all)
					}
					next = all[n-1].offset + 1
				}
				for _, k := range all {
					if !k.done {
						open++
					}
				}
				if p.next != next || p.open != open || p.len() < open {
					t.Fatalf("next is %d, want %d; %d open, want %d", p.next, next, p.open, open)
				}
			},
		})
	})
}
