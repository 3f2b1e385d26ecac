package cli

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/internal/proof/testservers"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
)

// onEachStore runs a test over an empty store of each kind.
func onEachStore(t *testing.T, test func(t *testing.T, st store.Store)) {
	open := func(t *testing.T, url string) store.Store {
		st, err := app.OpenStore(url, app.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { st.Close() }) //nolint:errcheck // what it holds is thrown away
		return st
	}
	t.Run("memory", func(t *testing.T) { test(t, memory.New(memory.Options{})) })
	t.Run("sqlite", func(t *testing.T) { test(t, open(t, "sqlite://"+filepath.Join(t.TempDir(), "s.db"))) })
	t.Run("postgres", func(t *testing.T) { test(t, open(t, testservers.OwnPostgres(t).URL)) })
}

// randomOffice is an office whose queues, letters and work are drawn from a seed. Many
// share a store, each with queues of its own.
type randomOffice struct {
	*testing.T
	*rand.Rand
	st     store.Store
	queues []string
}

// offices counts those of a seed.
const offices = 200

// TestPreviewIsTheRun shows that a preview says of every letter what the run then does,
// and why, as long as nothing changes in between.
func TestPreviewIsTheRun(t *testing.T) {
	proof.Run(t, "previews", func(t *testing.T, first uint64) int {
		previewsAreRuns(t, (first-1)*offices, proof.Count("previews"))
		return proof.Count("previews")
	})
}

// previewsAreRuns compares in all offices on the store in memory. The other stores have the first
// few, and each that is the first with a reason to refuse.
func previewsAreRuns(t *testing.T, first uint64, few int) {
	chosen, known := map[int]bool{}, map[string]bool{}
	onEachStore(t, func(t *testing.T, st store.Store) {
		_, all := st.(*memory.Store)
		compared, moved, refused := 0, int64(0), map[string]int64{}
		for n := range offices {
			if !all && !chosen[n] && len(chosen) > 0 {
				continue
			}
			seed := first + uint64(n)
			r := &randomOffice{t, rand.New(rand.NewPCG(seed, 7)), st, nil}
			r.fill(seed)
			plan := r.compare(seed)
			moved += plan.Movable
			for _, why := range plan.Refused {
				refused[why.Value] += why.Count
				if all && !known[why.Value] {
					known[why.Value], chosen[n] = true, true
				}
			}
			if n < few {
				chosen[n] = true
			}
			compared++
		}
		t.Logf("%d offices, %d letters moved, %d reasons to refuse: %v", compared, moved, len(refused), refused)
		if moved < int64(compared) || len(refused) < max(6, len(known)) {
			t.Errorf("the offices are too much alike, or have not all the reasons %v", known)
		}
	})
}

func (r *randomOffice) ok(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// fill makes letters of all statuses, in queues of all kinds, some of whose keys were
// taken since.
func (r *randomOffice) fill(seed uint64) {
	ctx := r.Context()
	scopes := []nixie.DedupeScope{"", nixie.DedupeUnresolved, nixie.DedupeEver}
	orders := []nixie.Order{"", nixie.OrderStrict, nixie.OrderRelaxed}
	for n := range 1 + r.IntN(3) {
		queue := fmt.Sprintf("o%d-%d", seed, n)
		r.queues = append(r.queues, queue)
		order := orders[r.IntN(3)]
		r.ok(store.Configure(ctx, r.st, queue, nixie.QueueSettings{DedupeScope: scopes[r.IntN(3)], Order: order}, "ann", ""))
		r.die(queue, 2+r.IntN(12))
		r.ok(store.Configure(ctx, r.st, queue, nixie.QueueSettings{DedupeScope: scopes[r.IntN(3)], Order: order}, "ann", ""))
		var holders []nixie.Message
		for i := range r.IntN(4) {
			holders = append(holders, nixie.Message{Queue: queue, DedupeKey: fmt.Sprint("k", i)})
		}
		_, err := r.st.Enqueue(ctx, holders...)
		r.ok(err)
	}
	list, _, err := r.st.Letters(ctx, nixie.Filter{Queues: r.queues}, store.Page{Limit: 1000})
	r.ok(err)
	events := []store.Event{store.OnHold, store.OnDiscard, store.OnRedrive, store.OnNote, store.OnUnhold}
	for range 2 {
		var resolutions []store.Resolution
		for _, l := range list {
			if r.IntN(3) == 0 { // some are refused
				resolutions = append(resolutions, store.Resolution{Letter: l.ID, Event: events[r.IntN(len(events))], Actor: "bob",
					Reason: "r", Force: true})
			}
		}
		r.st.Resolve(ctx, resolutions)
	}
}

// die enqueues messages and lets them die, some of them more than once.
func (r *randomOffice) die(queue string, n int) {
	ctx := r.Context()
	var list []nixie.Message
	for i := range n {
		m := nixie.Message{Queue: queue, Key: fmt.Sprint("a", i), Body: []byte("x")}
		if r.IntN(2) == 0 {
			m.DedupeKey = fmt.Sprint("k", r.IntN(6))
		}
		if r.IntN(3) == 0 {
			m.Stream = fmt.Sprint("s", r.IntN(2))
		}
		if r.IntN(6) == 0 {
			m.ExpiresAt = time.Now().Add(-time.Hour)
		}
		list = append(list, m)
	}
	for range 4 {
		_, err := r.st.Enqueue(ctx, list...) // those whose key was released come again
		r.ok(err)
		ds, err := r.st.Claim(ctx, queue, nixie.Want{Max: 10, Lease: time.Hour})
		r.ok(err)
		var settlements []nixie.Settlement
		for _, d := range ds {
			settlements = append(settlements, r.dying(d))
		}
		r.ok(errors.Join(r.st.Settle(ctx, settlements)...))
		letters, _, err := r.st.Letters(ctx, nixie.Filter{Queues: []string{queue}, Statuses: []nixie.Status{nixie.StatusOpen}},
			store.Page{Limit: 3})
		r.ok(err)
		var back []store.Resolution
		for _, l := range letters {
			back = append(back, store.Resolution{Letter: l.ID, Event: store.OnRedrive, Actor: "ann", Force: true})
		}
		r.st.Resolve(ctx, back)
		list = list[:n/3]
	}
}

func (r *randomOffice) dying(d *nixie.Delivery) nixie.Settlement {
	now := time.Now()
	reason := []nixie.Reason{nixie.ReasonTimeout, nixie.ReasonAuth}[r.IntN(2)]
	return nixie.Settlement{
		Delivery: d, Verb: nixie.Bury,
		Failure: &nixie.Failure{Generation: d.Generation, Attempt: 1, StartedAt: now, FailedAt: now, Class: nixie.ClassTransient,
			Reason: reason, Text: "it"},
		Burial: &nixie.Burial{
			Cause: nixie.CauseExhausted, Status: []nixie.Status{nixie.StatusOpen, nixie.StatusOpen, nixie.StatusReview,
				nixie.StatusQuarantined}[r.IntN(4)],
			Signature: string(reason), Fingerprint: "v1-" + string(reason), Redrivable: r.IntN(4) > 0, NeedsReview: r.IntN(4) == 0,
		},
	}
}

// compare draws work, previews it and carries it out.
func (r *randomOffice) compare(seed uint64) office.Plan {
	ctx := r.Context()
	o, err := office.New(office.Config{Store: r.st, Actor: "ann"})
	r.ok(err)
	events := []store.Event{store.OnRedrive, store.OnRedrive, store.OnRedrive, store.OnDiscard, store.OnHold, store.OnUnhold,
		store.OnRestore, store.OnPurge, store.OnRequalify, store.OnNote}
	w := office.OperationRequest{
		Event: events[r.IntN(len(events))], Filter: nixie.Filter{Queues: r.queues}, Reason: "r", Force: r.IntN(3) == 0,
		Max: []int{0, 0, 4}[r.IntN(3)], MaxRedrives: []int{0, 1, -1}[r.IntN(3)], Batch: 1 + r.IntN(4),
	}
	if r.IntN(2) == 0 { // also what the event cannot move
		w.Filter.Statuses = nixie.Statuses()
	}
	before, err := o.Preview(ctx, &w)
	r.ok(err)
	withheld, err := o.Withheld(ctx, &w, before.Selected)
	r.ok(err)
	op, err := o.Begin(ctx, &w)
	r.ok(err)
	v, err := o.Run(ctx, op.Operation, &w)
	r.ok(err)
	if v.Selected != before.Selected || v.Done() != before.Movable || v.Skipped != before.Skipped || v.Failed != 0 {
		r.Errorf("office %d, %s: %+v\nthe preview said %+v", seed, w.Event, v, before)
	}
	if v.Skipped > int64(len(v.Refused)) {
		return before
	}
	why := map[string]int64{}
	for _, refusal := range slices.Concat(v.Refused, withheld) {
		why[groupOf(refusal.Why)]++
	}
	said := map[string]int64{}
	for _, c := range before.Refused {
		said[groupOf(c.Value)] += c.Count
	}
	if !reflect.DeepEqual(why, said) {
		r.Errorf("office %d, %s: refused because %v\nthe preview said %v", seed, w.Event, why, said)
	}
	for _, refusal := range v.Refused {
		if !slices.Contains(before.Letters, refusal.Letter) {
			r.Errorf("office %d, %s: %s was refused, the preview did not choose it", seed, w.Event, refusal.Letter)
		}
	}
	return before
}

// groupOf is a refusal without what differs from letter to letter.
func groupOf(why string) string {
	why = anyID.ReplaceAllString(why, "")
	for _, kind := range []string{"dedupe key", "needs review", "not redrivable", "the cap is", "has expired", "is not possible",
		"the purge is not"} {
		if strings.Contains(why, kind) {
			return kind
		}
	}
	return why
}
