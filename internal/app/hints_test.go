package app

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
)

// What lists read gives the names that are read in a file.
func TestHintsOfListsAreThoseOfFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	st, err := OpenStore("sqlite://"+path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close() //nolint:errcheck // a test
	ctx := t.Context()
	ordered := func(s *nixie.QueueSettings) error { s.Order = nixie.OrderStrict; return nil }
	if _, err := st.Adjust(ctx, "mail", "ann", "", ordered); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Enqueue(ctx, nixie.Message{Queue: "mail", Type: "welcome", Key: "k-1", Stream: "a"}); err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1_000_000, 0)
	letter := nixie.Letter{Message: nixie.Message{Queue: "mail", Type: "bill", Key: "k-2", Body: []byte("{}")}, Cause: nixie.CauseExhausted,
		Class: nixie.ClassTransient, Reason: nixie.ReasonTimeout, Status: nixie.StatusOpen, DiedAt: at, FirstFailedAt: at, LastFailedAt: at,
		Signature: "timeout", Fingerprint: "v3-0123456789abcdef"}
	receipts, errs := st.Adopt(ctx, []nixie.Letter{letter}, "ann", "")
	if errs[0] != nil {
		t.Fatal(errs[0])
	}
	operation := store.Operation{Event: store.OnRedrive, Actor: "ann", Reason: "fixed", CreatedAt: at}
	if _, err := st.Plan(ctx, operation, nixie.Filter{IDs: []nixie.ID{receipts[0].ID}}, 1); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"queue", "id", "message", "operation", "key", "stream", "type", "fingerprint"} {
		var want, got []string
		if err := sqlite.Hints(ctx, path, kind, func(name, _ string) { want = append(want, name) }); err != nil {
			t.Fatal(err)
		}
		found, err := hintsOf(ctx, st, kind)
		for _, hint := range found {
			got = append(got, hint[0])
		}
		slices.Sort(want)
		if slices.Sort(got); err != nil || len(want) == 0 || !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q, %v", kind, got, want, err)
		}
	}
}
