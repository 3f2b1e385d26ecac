package postgres_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// TestAddingByAnOldSnapshot adds to a stream in a transaction that sees the store as it was
// before what was there ended: what it added comes all the same.
func TestAddingByAnOldSnapshot(t *testing.T) {
	ctx := t.Context()
	s, schema := prepared(t, strict(), "1")
	d := one(t, s)
	tx := begin(t)
	_, err := tx.Exec(ctx, "set transaction isolation level repeatable read")
	must(t, err)
	_, err = tx.Exec(ctx, "select from "+schema+".queue")
	must(t, err)
	must(t, completed(s, d))
	if got := drain(t, s); len(got) > 0 {
		t.Errorf("messages %v came", got)
	}
	add(t, s.Tx(tx), "2")
	must(t, tx.Commit(ctx))
	sound(t, s)
	if got := drain(t, s); !slices.Equal(got, []string{"2"}) {
		t.Errorf("then came %v", got)
	}
}

// TestOldSnapshotsAreRefused: what a transaction would decide by a stream as it was is
// refused, and the transaction can be used for what is about no stream.
func TestOldSnapshotsAreRefused(t *testing.T) {
	ctx := t.Context()
	s, _ := prepared(t, strict(), "1")
	must(t, store.Configure(ctx, s, "r", nixie.QueueSettings{Order: nixie.OrderRelaxed}, "ann", ""))
	d := one(t, s)
	for _, level := range []string{"repeatable read", "serializable"} {
		tx := begin(t)
		_, err := tx.Exec(ctx, "set transaction isolation level "+level)
		must(t, err)
		own := s.Tx(tx)
		for name, m := range map[string]nixie.Message{
			"delay": {Queue: "q", Stream: "t", Delay: time.Second}, "key": {Queue: "q", Stream: "t", DedupeKey: "k"},
			"relaxed": {Queue: "r", Stream: "t"},
		} {
			if _, err := own.Enqueue(ctx, m); nixie.CodeOf(err) != nixie.CodeInvalid ||
				!strings.Contains(err.Error(), "the transaction is "+level) {
				t.Errorf("%s, %s: %v", level, name, err)
			}
		}
		if err := own.Complete(ctx, d); err == nil {
			t.Errorf("%s: a message of a stream was completed", level)
		}
		_, err = own.Enqueue(ctx, nixie.Message{Queue: "q", Stream: "t"}, nixie.Message{Queue: "plain", DedupeKey: level})
		must(t, err)
		must(t, tx.Commit(ctx))
	}
	must(t, completed(s, d))
	if got := drain(t, s); len(got) != 2 {
		t.Errorf("messages %v came", got)
	}
	sound(t, s)
}
