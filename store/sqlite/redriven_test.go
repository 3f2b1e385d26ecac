package sqlite_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
)

// TestClaimsReadLettersOfRedrivenOnesOnly takes the letters away from a store: a claim of messages
// that are new or retried does not notice.
func TestClaimsReadLettersOfRedrivenOnesOnly(t *testing.T) {
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "store.db"), sqlite.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	claim := func(queue string, n int) {
		t.Helper()
		ds, err := s.Claim(t.Context(), queue, nixie.Want{Max: n})
		if err != nil || len(ds) != n {
			t.Errorf("queue %s: %d messages, want %d: %v", queue, len(ds), n, err)
		}
	}
	take := func(queue string, st nixie.Settlement) {
		t.Helper()
		ds, err := s.Claim(t.Context(), queue, nixie.Want{Max: 1})
		must(t, err)
		st.Delivery = ds[0]
		must(t, errors.Join(s.Settle(t.Context(), []nixie.Settlement{st})...))
	}
	_, err = s.Enqueue(t.Context(), nixie.Message{Queue: "q"}, nixie.Message{Queue: "q"}, nixie.Message{Queue: "redriven"})
	must(t, err)
	take("q", nixie.Settlement{Verb: nixie.Retry, Failure: &nixie.Failure{Text: "x", Decision: nixie.Retry}})
	take("redriven", nixie.Settlement{Verb: nixie.Bury, Burial: &nixie.Burial{Cause: nixie.CauseOperator, Status: nixie.StatusOpen,
		Redrivable: true}})
	l, _, err := s.Letters(t.Context(), nixie.Filter{}, store.Page{})
	must(t, err)
	must(t, errors.Join(s.Resolve(t.Context(), []store.Resolution{{Letter: l[0].ID, Event: store.OnRedrive, Actor: "ann"}})...))
	must(t, s.Run(t.Context(), "alter table letter rename to taken"))
	claim("q", 2)
	if _, err := s.Claim(t.Context(), "redriven", nixie.Want{Max: 1}); err == nil {
		t.Error("a claim of a redriven message found its letter, which is not there")
	}
}
