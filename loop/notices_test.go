package loop_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/proof/testservers"
	"github.com/nixie-go/nixie/loop"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/store/postgres"
	"github.com/nixie-go/nixie/store/sqlite"
	"github.com/nixie-go/nixie/worker"
)

// A notice whose letter has moved on is acknowledged, and no handler hears of it. One that is about
// no letter of its store always gets to its handler.
func TestNoticesOfLettersThatMovedOn(t *testing.T) {
	onDisk := must(sqlite.Open(t.TempDir()+"/nixie.db", sqlite.Options{}))(t)
	defer func() { _ = onDisk.Close() }()
	stores := map[string]store.Store{"memory": memory.New(memory.Options{}), "sqlite": onDisk}
	t.Run("with a server", func(t *testing.T) {
		own := testservers.OwnPostgres(t)
		inServer := must(postgres.Open(ctx, own.URL, postgres.Options{}))(t)
		defer func() { _ = inServer.Close() }()
		noticesThatMovedOn(t, map[string]store.Store{"postgres": inServer})
	})
	noticesThatMovedOn(t, stores)
}

func noticesThatMovedOn(t *testing.T, stores map[string]store.Store) {
	// The two ways of a notice: the loop sends it, or the store because of a setting of the queue.
	ways := []string{"of the loop", "of the store"}
	for name, c := range map[string]struct {
		do      func(*testing.T, *hospital, nixie.ID)
		handled bool
	}{
		"open":      {func(*testing.T, *hospital, nixie.ID) {}, true},
		"held":      {func(t *testing.T, h *hospital, id nixie.ID) { h.resolve(t, id, store.OnHold) }, true},
		"redriving": {func(t *testing.T, h *hospital, id nixie.ID) { h.resolve(t, id, store.OnRedrive) }, false},
		"resolved": {func(t *testing.T, h *hospital, id nixie.ID) {
			h.cured["a"] = true
			h.resolve(t, id, store.OnRedrive)
			h.work(t)
		}, false},
		"discarded": {func(t *testing.T, h *hospital, id nixie.ID) { h.resolve(t, id, store.OnDiscard) }, false},
		"restored": {func(t *testing.T, h *hospital, id nixie.ID) {
			h.resolve(t, id, store.OnDiscard)
			h.resolve(t, id, store.OnRestore)
		}, true},
		"purged":      {func(t *testing.T, h *hospital, id nixie.ID) { h.resolve(t, id, store.OnPurge, nixie.StatusOpen) }, false},
		"quarantined": {func(t *testing.T, h *hospital, id nixie.ID) { h.quarantine(t, id) }, false},
	} {
		for on, st := range stores {
			for _, way := range ways {
				t.Run(name+"/"+on+"/"+way, func(t *testing.T) {
					h := hospitalOf(t, st, strings.ReplaceAll(name+" "+way, " ", "-"))
					if way == "of the store" {
						h.letStoreTell(t)
					}
					id := must(h.requests.Send(ctx, request{Request: "a"}))(t)
					h.die(t, way)
					c.do(t, h, id)
					got := h.consume(t, taken)
					if handled := len(got) == 1; handled != c.handled || len(got) > 1 {
						t.Errorf("handled %v, want %t", got, c.handled)
					}
					if n := must(h.dead.ApproximateCount(ctx))(t); n != 0 {
						t.Errorf("%d notices are left", n)
					}
				})
			}
		}
	}
}

// letStoreTell makes the store send the notices.
func (h *hospital) letStoreTell(t fataler) {
	t.Helper()
	to := nixie.QueueSettings{DeadLetterTo: h.dead.Name()}
	if err := store.Configure(ctx, h.st, h.requests.Name(), to, "ann", "as agreed"); err != nil {
		t.Fatal(err)
	}
}

// die runs the requests that are ready until they are dead. A loop does, or a worker of a queue
// whose store sends the notices.
func (h *hospital) die(t fataler, way string) {
	t.Helper()
	if way == "of the loop" {
		h.work(t)
		return
	}
	w := untilIdle
	w.Source, w.Handler = store.NewSource(h.st, h.requests.Name()), nixie.HandlerFunc(func(context.Context, *nixie.Delivery) error {
		return nixie.Permanent(errContent)
	})
	if err := must(worker.New(w))(t).Run(ctx); err != nil {
		t.Fatal(err)
	}
}

// quarantine lets the letter die again with a policy that allows no redrive, and leaves the first
// notice only.
func (h *hospital) quarantine(t fataler, id nixie.ID) {
	t.Helper()
	h.resolve(t, id, store.OnRedrive)
	w := untilIdle
	w.Policy = must(policy.New(policy.Config{MaxRedrives: 1}))(t)
	w.Source, w.Handler = store.NewSource(h.st, h.requests.Name()), nixie.HandlerFunc(func(context.Context, *nixie.Delivery) error {
		return nixie.Permanent(errContent)
	})
	if err := must(worker.New(w))(t).Run(ctx); err != nil {
		t.Fatal(err)
	}
	if l := h.letter(t, id); l.Status != nixie.StatusQuarantined {
		t.Fatal("the letter is", l.Status)
	}
}

// Notices of a batch are looked up in one call, however many they are; when it fails, handlers hear
// of all of them.
func TestOneLookUpForABatch(t *testing.T) {
	h := newHospital(t, memory.New(memory.Options{}))
	for i := range 50 {
		must(h.requests.Send(ctx, request{Request: fmt.Sprint(i)}))(t)
	}
	h.work(t)
	watched := &lookUps{Store: h.st}
	h.dead = must(loop.In[deadRequest, struct{}](watched, "requests-dlq", loop.Config{}))(t)
	if got := h.consume(t, taken); len(got) != 50 || watched.calls > 2 {
		t.Errorf("%d notices with %d calls", len(got), watched.calls)
	}
	must(h.requests.Send(ctx, request{Request: "later"}))(t)
	h.work(t)
	watched.err = errors.New("no answer")
	if got := h.consume(t, taken); len(got) != 1 {
		t.Errorf("handled %v while the look-up fails", got)
	}
}

// lookUps counts the calls for letters.
type lookUps struct {
	loop.Store
	calls int
	err   error
}

func (s *lookUps) Letters(ctx context.Context, f nixie.Filter, p store.Page) ([]nixie.Letter, string, error) {
	s.calls++
	if s.err != nil {
		return nil, "", s.err
	}
	return s.Store.Letters(ctx, f, p)
}

// A dead letter that has no letter, as of an answer that no mailbox took, or of another program,
// gets to its handler.
func TestNoticesWithoutALetter(t *testing.T) {
	h := newHospital(t, memory.New(memory.Options{}))
	by := deadRequest{MessageID: nixie.ID{7}, Body: request{Request: "by hand"}, SourceMailbox: "elsewhere", DeadLetteredAt: time.Now()}
	must(h.dead.Send(ctx, by))(t)
	if got := h.consume(t, taken); len(got) != 1 {
		t.Errorf("handled %v", got)
	}
}
