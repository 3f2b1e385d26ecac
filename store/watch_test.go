package store

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixie-go/nixie"
)

// bell is a store with Watch. Its queue a has one message, which is due at a moment.
type bell struct {
	Queue
	Wakes
	eye    *Watch
	mu     sync.Mutex
	began  time.Time
	looks  []time.Duration // since it began
	claims []time.Duration
	due    time.Time // zero is never
	fails  bool
	one    *nixie.Delivery
}

func newBell() *bell {
	b := &bell{began: time.Now(), one: &nixie.Delivery{}}
	b.eye = NewWatch(&b.Wakes, b.look)
	return b
}

func (b *bell) Features() Features { return Features{Watch: b.eye.Watch, Wake: b.Next} }

func (b *bell) look(_ context.Context, queues []string) (Found, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.looks = append(b.looks, time.Since(b.began))
	switch rest := time.Until(b.due); {
	case b.fails:
		return Found{}, errors.New("away")
	case b.due.IsZero() || !slices.Contains(queues, "a"):
		return Found{Next: time.Second}, nil
	case rest <= 0:
		return Found{Ready: []string{"a"}, Next: time.Second}, nil
	default:
		return Found{Next: min(rest, time.Second)}, nil
	}
}

func (b *bell) Claim(_ context.Context, queue string, _ nixie.Want) ([]*nixie.Delivery, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.claims = append(b.claims, time.Since(b.began))
	switch {
	case b.fails:
		return nil, errors.New("away")
	case queue != "a" || b.due.IsZero() || time.Until(b.due) > 0:
		return nil, nil
	}
	b.due = time.Time{}
	return []*nixie.Delivery{b.one}, nil
}

// set changes the moment at which the message is due, or makes the store fail.
func (b *bell) set(due time.Time, fails bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.due, b.fails = due, fails
}

const ms = time.Millisecond

// TestIdleSourceDoesNotClaim waits for a minute in calls of a second. The source claims once from
// each queue, and looks become as rare as the store says.
func TestIdleSourceDoesNotClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBell()
		s := NewSource(b, "a", "b")
		for range 60 {
			if got, err := s.Receive(t.Context(), nixie.Want{Max: 1, Wait: time.Second}); len(got) > 0 || err != nil {
				t.Fatal(got, err)
			}
		}
		b.eye.Close()
		if len(b.claims) != 2 {
			t.Errorf("claimed at %v", b.claims)
		}
		want := []time.Duration{50 * ms, 150 * ms, 350 * ms, 750 * ms, 1550 * ms, 2550 * ms}
		if !slices.Equal(b.looks[:len(want)], want) || len(b.looks) > 65 {
			t.Errorf("%d looks, at %v", len(b.looks), b.looks[:len(want)])
		}
	})
}

// TestDueIsSeenInTime adds a message that is due later, with and without a poke, and measures when
// it is claimed.
func TestDueIsSeenInTime(t *testing.T) {
	for name, c := range map[string]struct {
		delay  time.Duration
		poke   bool
		latest time.Duration // after it is due
	}{
		"told, due soon":     {10 * ms, true, 50 * ms},
		"told, due later":    {380 * ms, true, ms},
		"told, much later":   {90 * time.Second, true, ms},
		"not told, due soon": {10 * ms, false, time.Second},
		"not told, later":    {90 * time.Second, false, ms},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBell()
				defer b.eye.Close()
				came := make(chan time.Time, 1)
				go func() {
					s := NewSource(b, "a")
					for t.Context().Err() == nil {
						if got, _ := s.Receive(t.Context(), nixie.Want{Max: 1, Wait: time.Second}); len(got) > 0 {
							came <- time.Now()
							return
						}
					}
				}()
				time.Sleep(10*time.Second + 13*ms)
				due := time.Now().Add(c.delay)
				b.set(due, false)
				if c.poke {
					b.eye.Poke()
				}
				if late := (<-came).Sub(due); late < 0 || late > c.latest {
					t.Errorf("it came %s after it was due, want %s at most", late, c.latest)
				}
			})
		})
	}
}

// TestWaitingMeetsTrouble makes a store fail. Waiting callers get the error, and when the store is
// back they get the message that came meanwhile. They also learn when the store is closed.
func TestWaitingMeetsTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBell()
		s := NewSource(b, "a")
		want := nixie.Want{Max: 1, Wait: time.Minute}
		began := time.Now()
		go func() {
			time.Sleep(30 * time.Second)
			b.set(time.Now(), true)
		}()
		if _, err := s.Receive(t.Context(), want); err == nil || time.Since(began) > 32*time.Second {
			t.Errorf("told %v after %s", err, time.Since(began))
		}
		b.set(time.Now(), false)
		if got, err := s.Receive(t.Context(), want); len(got) != 1 || err != nil {
			t.Errorf("got %d, %v", len(got), err)
		}
		go func() {
			time.Sleep(time.Second)
			b.set(time.Time{}, true)
			b.eye.Close()
		}()
		if _, err := s.Receive(t.Context(), want); err == nil {
			t.Error("no error says that the store is closed")
		}
	})
}

// The looks end when no caller waits any more.
func TestLooksEndWithTheLastCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBell()
		defer b.eye.Close()
		if _, err := NewSource(b, "a").Receive(t.Context(), nixie.Want{Max: 1, Wait: 5 * time.Second}); err != nil {
			t.Fatal(err)
		}
		looks := func() int {
			b.mu.Lock()
			defer b.mu.Unlock()
			return len(b.looks)
		}
		n := looks()
		time.Sleep(time.Minute)
		if more := looks() - n; more > 1 {
			t.Errorf("%d looks, and no caller waits", more)
		}
		go b.set(time.Now(), false)
		if got, err := NewSource(b, "a").Receive(t.Context(), nixie.Want{Max: 1, Wait: time.Minute}); len(got) != 1 || err != nil {
			t.Errorf("got %d, %v", len(got), err)
		}
	})
}

// A claim with NoSuspects finds nothing. A later claim without it asks the store again at once.
func TestAllClaimsAskAfterOneWithoutSuspects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBell()
		defer b.eye.Close()
		s := NewSource(b, "a")
		for i, want := range []nixie.Want{{NoSuspects: true}, {NoSuspects: true}, {}, {}, {NoSuspects: true}} {
			want.Max, want.Wait = 1, 10*ms
			if _, err := s.Receive(t.Context(), want); err != nil {
				t.Fatal(err)
			}
			if claims := []int{1, 1, 2, 2, 2}[i]; len(b.claims) != claims {
				t.Errorf("%d claims after wait %d, want %d", len(b.claims), i, claims)
			}
		}
	})
}

// A claim that returns less than it wants has emptied the queue, unless it returns a suspect or a
// large message: these leave others in the queue.
func TestAClaimOfTheLastOnesEmptiesTheQueue(t *testing.T) {
	for name, c := range map[string]struct {
		one    nixie.Delivery
		claims int
	}{
		"the last":     {nixie.Delivery{}, 1},
		"a suspect":    {nixie.Delivery{Message: nixie.Message{Crashes: 1}}, 2},
		"to be judged": {nixie.Delivery{Abandoned: true}, 2},
		"a large one":  {nixie.Delivery{Message: nixie.Message{Body: make([]byte, nixie.MaxBatchBytes/2)}}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBell()
				defer b.eye.Close()
				b.one = &c.one
				b.set(time.Now(), false)
				s := NewSource(b, "a")
				for _, want := range []int{1, 0} {
					if got, err := s.Receive(t.Context(), nixie.Want{Max: 2, Wait: 10 * ms}); len(got) != want || err != nil {
						t.Errorf("got %d, %v, want %d", len(got), err, want)
					}
				}
				if len(b.claims) != c.claims {
					t.Errorf("%d claims, want %d", len(b.claims), c.claims)
				}
			})
		})
	}
}
