package powerloss_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/internal/proof/faultdisk"
	"github.com/nixie-go/nixie/redrive"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
)

// TestR26_APurgeGoesOnAfterEveryCrash purges letters and prunes what has ended,
// and lets the power go at every write: the store is sound each time, and the
// operation and the pruning go on to their end.
func TestR26_APurgeGoesOnAfterEveryCrash(t *testing.T) {
	disk := faultdisk.New(t, "store")
	born := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	s, err := sqlite.Open(disk.Path("store.db"), sqlite.Options{VFS: disk.VFS(), Reserve: -1, LockWait: time.Millisecond,
		Clock: func() time.Time { return born }})
	must(t, err)
	must(t, store.Configure(t.Context(), s, "q", nixie.QueueSettings{DedupeScope: nixie.DedupeEver}, "test", ""))
	for i := range 4 {
		_, err := s.Enqueue(t.Context(), nixie.Message{Queue: "q", Key: fmt.Sprint(i), DedupeKey: fmt.Sprint(i)})
		must(t, err)
	}
	endAll(t, s)
	letters, _, err := s.Letters(t.Context(), nixie.Filter{}, store.Page{})
	must(t, err)
	for i := range letters {
		for _, on := range []store.Event{store.OnNote, store.OnDiscard} {
			must(t, s.Resolve(t.Context(), []store.Resolution{{Letter: letters[i].ID, Event: on, Actor: "test", Reason: "why"}})[0])
		}
	}
	must(t, s.Close())
	lived := len(disk.Trace())

	later := sqlite.Options{VFS: disk.VFS(), Reserve: -1, LockWait: time.Millisecond,
		Clock: func() time.Time { return born.Add(100 * 24 * time.Hour) }}
	s, err = sqlite.Open(disk.Path("store.db"), later)
	must(t, err)
	e, err := redrive.New(redrive.Config{Store: s, Batch: 1})
	must(t, err)
	op, err := e.Plan(t.Context(), store.Operation{Event: store.OnPurge, Actor: "test", Reason: "old"}, nixie.Filter{}, 0)
	must(t, err)
	disk.Mark("planned " + op.ID.String())
	_, err = e.Run(t.Context(), op.ID)
	must(t, err)
	disk.Mark("purged")
	prune(t, s)
	disk.Mark("pruned")
	must(t, s.Close())

	later.VFS = ""
	proof.Run(t, "power-loss-purge", func(t *testing.T, seed uint64) int {
		var wrong atomic.Int64
		tally := faultdisk.EachCrash(t, disk, part(seed, faultdisk.Plan{From: lived, Seeds: 1}), func(t *testing.T, c faultdisk.Crash) {
			s, err := sqlite.Open(c.Path("store.db"), later)
			if err != nil {
				t.Fatalf("%s: %v", c, err)
			}
			defer s.Close() //nolint:errcheck // it was only looked at
			if err := purgeGoesOn(t, s, c.Acked()); err != nil {
				wrong.Add(1)
				t.Errorf("%s: %v", c, err)
			}
		})
		t.Logf("%d crash points, %d different images, %d wrong", tally.Points, tally.Images, wrong.Load())
		return 1
	})
}

// endAll completes one message, discards one and buries the others.
func endAll(t *testing.T, s *sqlite.Store) {
	ds, err := s.Claim(t.Context(), "q", nixie.Want{Max: 10, Lease: time.Hour})
	must(t, err)
	for i, d := range ds {
		st := nixie.Settlement{Delivery: d, Verb: nixie.Complete}
		if i > 0 {
			st.Verb, st.Failure = nixie.Discard, &nixie.Failure{Text: "no", Attachments: []nixie.Attachment{{Name: "stderr",
				Data: []byte("no")}}}
		}
		if i > 1 {
			st.Verb, st.Burial = nixie.Bury, &nixie.Burial{Cause: nixie.CausePermanent, Status: nixie.StatusOpen, Fingerprint: "f"}
		}
		must(t, s.Settle(t.Context(), []nixie.Settlement{st})[0])
	}
}

func prune(t *testing.T, s *sqlite.Store) {
	for cursor := ""; ; {
		done, err := s.Prune(t.Context(), store.Pruning{Limit: 1, Cursor: cursor})
		must(t, err)
		if cursor = done.Next; cursor == "" {
			return
		}
	}
}

// purgeGoesOn checks a store after a crash and brings what was begun to its end.
func purgeGoesOn(t *testing.T, s *sqlite.Store, promises []string) error {
	if err := broken(s, nil); err != nil {
		return err
	}
	planned := false
	for _, p := range promises {
		words := strings.Fields(p)
		if words[0] != "planned" {
			continue
		}
		planned = true
		id, err := nixie.ParseID(words[1])
		if err != nil {
			return err
		}
		e, err := redrive.New(redrive.Config{Store: s})
		if err != nil {
			return err
		}
		r, err := e.Run(t.Context(), id)
		if err != nil {
			return err
		}
		if r.Done != 2 || r.Pending+r.Skipped+r.Failed != 0 {
			return fmt.Errorf("the purge goes on to %+v", r.Operation)
		}
	}
	prune(t, s)
	queues, err := s.Queues(t.Context(), store.QueueQuery{})
	if err != nil {
		return err
	}
	if planned && (queues[0].Purged != 2 || queues[0].Pruned != 2 || queues[0].Total != 4 || queues[0].Discards[nixie.ReasonUnknown] != 1) {
		return fmt.Errorf("in the end the queue counts %+v", queues[0])
	}
	return broken(s, nil)
}
