package powerloss_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/internal/proof/faultdisk"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
)

// TestR18_AMoveIsWholeAtEveryCrash buries messages of every kind, redrives and
// buries them again, and lets the power go at every write: a message is never
// both dead and on its way, and never neither, and the audit has each move.
func TestR18_AMoveIsWholeAtEveryCrash(t *testing.T) {
	disk := faultdisk.New(t, "store")
	s, err := sqlite.Open(disk.Path("store.db"), sqlite.Options{VFS: disk.VFS(), Reserve: -1, LockWait: time.Millisecond})
	must(t, err)
	const messages = 2
	for i := range messages {
		_, err := s.Enqueue(t.Context(), nixie.Message{Queue: "q", Key: fmt.Sprint(i), DedupeKey: fmt.Sprint(i), Priority: i})
		must(t, err)
	}
	disk.Mark("enqueued")
	bury := func(generation int) {
		ds, err := s.Claim(t.Context(), "q", nixie.Want{Max: messages, Lease: time.Hour})
		must(t, err)
		for _, d := range ds {
			must(t, s.Settle(t.Context(), []nixie.Settlement{{
				Delivery: d, Verb: nixie.Bury, Failure: &nixie.Failure{Text: "no"},
				Burial: &nixie.Burial{Cause: nixie.CausePermanent, Status: nixie.StatusOpen, Fingerprint: "f", Redrivable: true},
			}})[0])
			disk.Mark(fmt.Sprint("dead ", d.Key, " ", generation))
		}
	}
	bury(1)
	letters, _, err := s.Letters(t.Context(), nixie.Filter{}, store.Page{})
	must(t, err)
	for i := range letters {
		must(t, s.Resolve(t.Context(), []store.Resolution{{Letter: letters[i].ID, Event: store.OnRedrive, Actor: "test"}})[0])
	}
	bury(2)
	must(t, s.Close())
	proof.Run(t, "power-loss-moves", func(t *testing.T, seed uint64) int {
		var wrong atomic.Int64
		tally := faultdisk.EachCrash(t, disk, part(seed, faultdisk.Plan{Seeds: 1}), func(t *testing.T, c faultdisk.Crash) {
			s, err := sqlite.Open(c.Path("store.db"), sqlite.Options{Reserve: -1})
			if err != nil {
				t.Fatalf("%s: %v", c, err)
			}
			defer s.Close() //nolint:errcheck // it was only looked at
			if err := eitherOr(s, c.Acked()); err != nil {
				wrong.Add(1)
				t.Errorf("%s: %v", c, err)
			}
		})
		t.Logf("%d crash points, %d different images, %d wrong", tally.Points, tally.Images, wrong.Load())
		return 1
	})
}

// audited says whether the audit has every death of a message and every redrive
// of its letter, and no other.
func audited(ctx context.Context, s *sqlite.Store, m *store.Record, letters []nixie.Letter, dead bool) error {
	deaths := m.Generation - 1
	if dead {
		deaths++
	}
	for i := range letters {
		entries, _, err := s.Audit(ctx, store.AuditFilter{Subjects: []nixie.ID{letters[i].ID}}, store.Page{})
		if err != nil {
			return err
		}
		if len(entries) != deaths+m.Redrives {
			return fmt.Errorf("letter of message %s has %d entries in the audit after %d deaths and %d redrives", m.Key, len(entries),
				deaths, m.Redrives)
		}
	}
	return nil
}

func eitherOr(s *sqlite.Store, promises []string) error {
	ctx := context.Background()
	ms, _, err := s.Messages(ctx, nixie.Filter{}, store.Page{Whole: true})
	if err != nil {
		return err
	}
	byKey := map[string]store.Record{}
	for _, m := range ms {
		ls, _, err := s.Letters(ctx, nixie.Filter{IDs: []nixie.ID{m.ID}}, store.Page{})
		if err != nil {
			return err
		}
		dead := m.State == nixie.Dead
		open := len(ls) == 1 && ls[0].Status == nixie.StatusOpen
		moving := len(ls) == 0 || len(ls) == 1 && ls[0].Status == nixie.StatusRedriving
		if dead != open || dead == moving || len(ls) > 1 {
			return fmt.Errorf("message %s is %s and has %d letters", m.Key, m.State, len(ls))
		}
		if err := audited(ctx, s, &m, ls, dead); err != nil {
			return err
		}
		byKey[m.Key] = m
	}
	for _, p := range promises {
		var key string
		var generation int
		if n, _ := fmt.Sscanf(p, "dead %s %d", &key, &generation); n != 2 {
			continue
		}
		if m := byKey[key]; m.Generation < generation || m.Generation == generation && m.State != nixie.Dead {
			return fmt.Errorf("%s: it is %s in generation %d", p, m.State, m.Generation)
		}
	}
	return broken(s, nil)
}
