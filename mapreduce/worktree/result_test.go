package worktree

import (
	"encoding/json"
	"fmt"
	"testing"
)

// The result of an item is kept once, before the merge; later attempts do not change it. An item
// whose merge failed has none.
func TestResults(t *testing.T) {
	b := newBench(t)
	j := b.open(nil)
	told := func(t *Tree, result string) error {
		_, err := t.Merge(b.t.Context(), "item "+t.Item, json.RawMessage(result))
		return err
	}
	want := func(want string) {
		t.Helper()
		got := ""
		for r, err := range b.known().Results() {
			b.must(err)
			got += fmt.Sprintf("%s %d %v %s; ", r.Item, r.Lease, r.Commit != "", r.Result)
		}
		if got != want {
			t.Errorf("results are %q, want %q", got, want)
		}
	}
	want("")
	first, late := b.attempt(j, "a/b", 1), b.attempt(j, "other", 1)
	b.work(first, "readme", "1\n")
	b.work(late, "readme", "2\n")
	b.must(told(first, `{"n":1}`))
	if err := told(late, `{"n":2}`); err == nil {
		t.Fatal("a conflict was merged")
	}
	want(`a/b 1 true {"n":1}; `)
	b.release(first)
	b.release(late)
	again, idle := b.attempt(j, "a/b", 2), b.attempt(j, "idle", 1)
	b.must(told(again, `{"n":3}`), told(idle, `"nothing to do"`))
	want(`a/b 1 true {"n":1}; idle 1 false "nothing to do"; `)
	b.release(again)
	b.release(idle)

	// The worker wrote a result and vanished before the merge.
	lost := b.attempt(j, "lost", 1)
	b.must(lost.keepResult(lost.Start, json.RawMessage(`1`)))
	b.release(lost)
	b.release(b.attempt(j, "lost", 2))
	want(`a/b 1 true {"n":1}; idle 1 false "nothing to do"; `)
}
