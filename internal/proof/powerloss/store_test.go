package powerloss_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/internal/proof/faultdisk"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
)

// drama runs the five core transactions (enqueue, claim, settle, bury, redrive
// item) and promises each result aloud once the store has acknowledged it. It
// stops at the first error.
type drama struct {
	s       store.Store
	promise func(string)
}

func (a drama) play() error {
	ctx := context.Background()
	if err := store.Configure(ctx, a.s, "q", nixie.QueueSettings{DedupeScope: nixie.DedupeUnresolved}, "test", ""); err != nil {
		return err
	}
	for _, group := range [][]string{{"done", "bad", "worse"}, {"slow", "extra"}} {
		ms := make([]nixie.Message, len(group))
		for i, key := range group {
			ms[i] = nixie.Message{Queue: "q", Key: key, DedupeKey: key, Body: []byte(strings.Repeat(key, 300))}
		}
		if _, err := a.s.Enqueue(ctx, ms...); err != nil {
			return err
		}
		for _, key := range group {
			a.promise("enqueued " + key)
		}
	}
	if err := a.round(); err != nil {
		return err
	}
	if err := a.redrive("bad"); err != nil {
		return err
	}
	return a.round()
}

// round claims what there is and settles it by its key.
func (a drama) round() error {
	ctx := context.Background()
	ds, err := a.s.Claim(ctx, "q", nixie.Want{Max: 10, Lease: time.Hour})
	if err != nil {
		return err
	}
	for _, d := range ds {
		a.promise(fmt.Sprintf("claimed %s %d", d.Key, d.Lease.Number))
		if err := a.s.Settle(ctx, []nixie.Settlement{verdict(d)})[0]; err != nil {
			return err
		}
		a.promise(map[bool]string{true: "buried ", false: "ended "}[isBad(d)] + d.Key)
	}
	return nil
}

func isBad(d *nixie.Delivery) bool {
	return d.Key == "bad" && d.Generation == 1 || d.Key == "worse"
}

// verdict returns the settlement of a delivery. The messages done and worse are followed by one.
func verdict(d *nixie.Delivery) nixie.Settlement {
	var then []nixie.Message
	if d.Key == "done" || d.Key == "worse" {
		then = []nixie.Message{{Queue: "then", Key: d.Key}}
	}
	if !isBad(d) {
		return nixie.Settlement{Delivery: d, Verb: nixie.Complete, Then: then}
	}
	return nixie.Settlement{
		Delivery: d, Verb: nixie.Bury, Then: then,
		Failure: &nixie.Failure{Text: "no", Reason: nixie.ReasonValidation, FailedAt: d.FirstReceivedAt},
		Burial:  &nixie.Burial{Cause: nixie.CausePermanent, Status: nixie.StatusOpen, Fingerprint: "f", Redrivable: true},
	}
}

func (a drama) redrive(key string) error {
	ctx := context.Background()
	op, err := a.s.Plan(ctx, store.Operation{Event: store.OnRedrive, Actor: "test"}, nixie.Filter{Keys: []string{key}}, 0)
	if err != nil {
		return err
	}
	found, err := store.FindOperation(ctx, a.s, store.OperationQuery{ID: op.ID, Next: 10})
	letters := found.Next
	if err != nil {
		return err
	}
	for _, id := range letters {
		if err := a.s.Resolve(ctx, []store.Resolution{{Letter: id, Event: store.OnRedrive, Actor: "test",
			Operation: op.ID}})[0]; err != nil {
			return err
		}
	}
	a.promise("redriven " + key)
	return nil
}

// broken says which of the promises a store does not keep. A later promise about
// a message may have come true without having been made.
func broken(s *sqlite.Store, promises []string) error {
	ctx := context.Background()
	report, err := s.Check(ctx)
	if err != nil {
		return err
	}
	if len(report.Violations) > 0 {
		return fmt.Errorf("violations: %+v", report.Violations)
	}
	for _, p := range promises {
		word, rest, _ := strings.Cut(p, " ")
		key, number, _ := strings.Cut(rest, " ")
		ms, _, err := s.Messages(ctx, nixie.Filter{Queues: []string{"q"}, Keys: []string{key}}, store.Page{Whole: true})
		if err != nil || len(ms) != 1 {
			return fmt.Errorf("%s: %d messages, %w", p, len(ms), err)
		}
		m := ms[0]
		kept := true
		switch word {
		case "enqueued":
			kept = nixie.HashBody(m.Body) == m.Hash && len(m.Body) == 300*len(key)
		case "claimed": // counted before a handler could have started
			kept = m.Redrives > 0 || fmt.Sprint(m.Deliveries) >= number || number == "2"
		case "ended":
			kept = m.State == nixie.Succeeded
		case "buried":
			kept = m.State == nixie.Dead && len(m.History) == 1 || m.Redrives == 1 && len(m.History) == 1
		case "redriven":
			kept = m.Redrives == 1 && m.Generation == 2
		}
		if !kept {
			return fmt.Errorf("%s: message is %s, %d deliveries, generation %d, %d failures", p, m.State, m.Deliveries, m.Generation,
				len(m.History))
		}
	}
	return errors.Join(followed(s, "done", nixie.Succeeded), followed(s, "worse", nixie.Dead))
}

// followed says what is wrong if a message has ended without the one that follows, or the reverse.
func followed(s *sqlite.Store, key string, end nixie.State) error {
	ms, _, err := s.Messages(context.Background(), nixie.Filter{Keys: []string{key}}, store.Page{})
	if err != nil {
		return err
	}
	ended, follow := 0, 0
	for _, m := range ms {
		switch {
		case m.Queue == "then":
			follow++
		case m.State == end:
			ended++
		}
	}
	if ended != follow {
		return fmt.Errorf("%d messages %s are %s, and %d follow", ended, key, end, follow)
	}
	return nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestPowerLoss lets the power go after every write and sync of the five core
// transactions, through the driver that ships.
func TestPowerLoss(t *testing.T) {
	disk := faultdisk.New(t, "store")
	s, err := sqlite.Open(disk.Path("store.db"), sqlite.Options{VFS: disk.VFS(), Reserve: -1, LockWait: time.Millisecond})
	must(t, err)
	must(t, drama{s, disk.Mark}.play())
	must(t, s.Close())
	proof.Run(t, "power-loss-core", func(t *testing.T, seed uint64) int {
		var wrong atomic.Int64
		tally := faultdisk.EachCrash(t, disk, part(seed, faultdisk.Plan{Seeds: 2}), func(t *testing.T, c faultdisk.Crash) {
			s, err := sqlite.Open(c.Path("store.db"), sqlite.Options{Reserve: -1})
			if err != nil {
				t.Fatalf("%s: %v", c, err)
			}
			defer s.Close() //nolint:errcheck // it was only looked at
			if err := broken(s, c.Acked()); err != nil {
				wrong.Add(1)
				t.Errorf("%s: %v", c, err)
			}
			if err := goesOn(s); err != nil {
				t.Errorf("%s: does not go on: %v", c, err)
			}
		})
		t.Logf("%d changes of the disk, %d crash points, %d different images, %d wrong", disk.Ops(), tally.Points, tally.Images,
			wrong.Load())
		if tally.Points < 500/parts {
			t.Errorf("%d crash points, want %d", tally.Points, 500/parts)
		}
		return 1
	})
}

// parts is the number of parts that the crash points of a test are cut into. Each seed tries
// one part: make test a single one, make proof all of them.
const parts = 5

// part returns the plan of the crash points of a seed.
func part(seed uint64, plan faultdisk.Plan) faultdisk.Plan {
	plan.From += int((seed - 1) % parts)
	plan.Every = parts
	return plan
}

// partOfCalls returns the calls to the disk that a seed fails.
func partOfCalls(seed uint64) faultdisk.Calls {
	return faultdisk.Calls{First: 1 + int((seed-1)%parts), Every: parts, Limit: 2000}
}

// goesOn uses a recovered store: everything left is claimed and settled, and
// nothing is violated afterwards.
func goesOn(s *sqlite.Store) error {
	ctx := context.Background()
	if _, err := s.Enqueue(ctx, nixie.Message{Queue: "q", Key: "after"}); err != nil {
		return err
	}
	for range 20 {
		ds, err := s.Claim(ctx, "q", nixie.Want{Max: 10})
		if err != nil || len(ds) == 0 {
			break
		}
		for _, d := range ds {
			st := nixie.Settlement{Delivery: d, Verb: nixie.Complete}
			if !isBad(d) {
				st = verdict(d)
			}
			if d.Abandoned {
				st = nixie.Settlement{Delivery: d, Verb: nixie.Retry, Failure: &nixie.Failure{Text: "vanished"}}
			}
			if err := s.Settle(ctx, []nixie.Settlement{st})[0]; err != nil {
				return err
			}
		}
	}
	qs, err := s.Queues(ctx, store.QueueQuery{})
	if err != nil {
		return err
	}
	for _, q := range qs {
		if q.Name == "q" && q.Unfinished() != 0 {
			return fmt.Errorf("%d messages are left", q.Unfinished())
		}
	}
	return broken(s, nil)
}

// coveredBy names the faults that show all that the given one could, so that
// the minute of a run goes to different ones.
func coveredBy(fault string) string {
	return map[string]string{
		"write=13_always":    "write=13 and write=13_short_512_always",
		"write=13_short_512": "write=13 and write=13_short_512_always",
		"read_always":        "read, and all calls for good",
		"open_always":        "open, and all calls for good",
		"access_always":      "access, and all calls for good",
		"size_always":        "size, and all calls for good",
		"shm-lock_always":    "shm-lock, and all calls for good",
	}[strings.NewReplacer(" ", "_").Replace(fault)]
}

// TestFailAtEveryCall fails each call to the disk, one after the other, in each way, and wants
// every promise kept and no damage done.
func TestFailAtEveryCall(t *testing.T) { proof.Run(t, "faults-core", failCalls) }

func failCalls(t *testing.T, seed uint64) int {
	for _, fault := range faultdisk.Catalog() {
		if other := coveredBy(fault.String()); other != "" {
			t.Logf("%s takes the same ways as %s", fault, other)
			continue
		}
		t.Run(fault.String(), func(t *testing.T) {
			struck := faultdisk.EachFault(t, fault, partOfCalls(seed), func(t *testing.T, disk *faultdisk.Disk) {
				var promises []string
				s, err := sqlite.Open(disk.Path("store.db"), sqlite.Options{VFS: disk.VFS(), Reserve: -1, LockWait: time.Millisecond})
				if err == nil {
					_ = drama{s, func(p string) { promises = append(promises, p) }}.play() // it ends where the fault strikes
					_ = s.Close()
				}
				disk.Heal()
				if s, err = sqlite.Open(disk.Path("store.db"), sqlite.Options{VFS: disk.VFS(), Reserve: -1,
					LockWait: time.Millisecond}); err != nil {
					t.Fatalf("after the fault: %v", err)
				}
				defer s.Close() //nolint:errcheck // it was only looked at
				if err := broken(s, promises); err != nil {
					t.Error(err)
				}
				if err := goesOn(s); err != nil {
					t.Errorf("does not go on: %v", err)
				}
			})
			t.Logf("%d faults", struck)
		})
	}
	return 1
}
