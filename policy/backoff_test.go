package policy

import (
	"math"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"pgregory.net/rapid"
)

func TestR1_ExponentialDelaysAndSaturation(t *testing.T) {
	b := Backoff{Base: time.Second, Factor: 2, Cap: 30 * time.Second, Jitter: JitterNone}
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		if got := b.Delay(i+1, 0); got != want*time.Second {
			t.Errorf("n=%d: %s, want %ds", i+1, got, want)
		}
	}
	for _, n := range []int{10_000, math.MaxInt32, math.MaxInt - 1, math.MaxInt} {
		if got := b.Delay(n, math.MaxUint64); got != b.Cap {
			t.Errorf("n=%d: %s, want the cap %s", n, got, b.Cap)
		}
		if got := (Backoff{Cap: none, Jitter: JitterNone}).Delay(n, 1); got != nixie.MaxDelay {
			t.Errorf("n=%d without cap: %s, want %s", n, got, nixie.MaxDelay)
		}
	}
	for _, n := range []int{0, -1, math.MinInt} {
		if got := b.Ceiling(n); got != time.Second {
			t.Errorf("n=%d: %s, want the base", n, got)
		}
	}
	fixed := Backoff{Base: 7 * time.Second, Factor: 1, Jitter: JitterNone}
	for _, n := range []int{1, 2, 50, math.MaxInt} {
		if got := fixed.Delay(n, 9); got != 7*time.Second {
			t.Errorf("factor 1, n=%d: %s, want 7s", n, got)
		}
	}
}

func backoffs() *rapid.Generator[Backoff] {
	return rapid.Custom(func(t *rapid.T) Backoff {
		return Backoff{
			Base:   time.Duration(rapid.Int64Range(1, int64(nixie.MaxDelay)).Draw(t, "base")),
			Factor: rapid.Float64Range(1, MaxFactor).Draw(t, "factor"),
			Cap:    time.Duration(rapid.Int64Range(int64(MinSpacing), int64(nixie.MaxDelay)).Draw(t, "cap")),
			Jitter: rapid.SampledFrom([]Jitter{JitterFull, JitterNone}).Draw(t, "jitter"),
		}
	})
}

func TestR2_JitterStaysWithinItsBand(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := backoffs().Draw(t, "backoff")
		if err := b.check(); err != nil {
			t.Fatal(err)
		}
		n := rapid.Int().Draw(t, "n")
		dice := rapid.Uint64().Draw(t, "dice")
		ceiling, delay := b.Ceiling(n), b.Delay(n, dice)
		switch {
		case ceiling < 0 || ceiling > b.Cap:
			t.Fatalf("ceiling %s is outside 0…%s", ceiling, b.Cap)
		case delay < MinSpacing || delay > max(ceiling, MinSpacing):
			t.Fatalf("delay %s is outside %s…%s", delay, MinSpacing, ceiling)
		case delay != b.Delay(n, dice):
			t.Fatal("the same dice gave another delay")
		case b.Jitter == JitterNone && delay != max(ceiling, MinSpacing):
			t.Fatalf("delay %s without jitter, want %s", delay, ceiling)
		case n > 1 && b.Ceiling(n-1) > ceiling:
			t.Fatalf("ceiling falls from %s to %s", b.Ceiling(n-1), ceiling)
		}
	})
}

// Over many messages that fail together the draws fill the whole band evenly,
// also at the cap.
func TestR2_FullJitterFillsTheBand(t *testing.T) {
	b := defaultBackoff()
	const draws, bands = 20_000, 10
	var ids nixie.IDs
	for _, n := range []int{1, 4, 11, 10_000} {
		var hits [bands]int
		ceiling := b.Ceiling(n)
		for range draws {
			d := nixie.Delivery{Message: nixie.Message{ID: ids.New(noon), Generation: 1, Attempts: n}}
			hits[int64(b.Delay(n, throw(&d)))*bands/(int64(ceiling)+1)]++
		}
		for i, h := range hits {
			if h < draws/bands*85/100 || h > draws/bands*115/100 {
				t.Errorf("n=%d: band %d of %d took %d of %d draws", n, i, bands, h, draws)
			}
		}
	}
}

func TestDiceFollowTheAttempt(t *testing.T) {
	d := nixie.Delivery{Message: nixie.Message{ID: nixie.ID{1}, Generation: 1, Attempts: 1}}
	first := throw(&d)
	again := d
	if throw(&again) != first {
		t.Error("the same attempt threw other dice")
	}
	for name, change := range map[string]func(*nixie.Delivery){
		"id":         func(d *nixie.Delivery) { d.ID[15] = 1 },
		"generation": func(d *nixie.Delivery) { d.Generation++ },
		"attempt":    func(d *nixie.Delivery) { d.Attempts++ },
	} {
		other := d
		change(&other)
		if throw(&other) == first {
			t.Errorf("another %s threw the same dice", name)
		}
	}
}

func TestNoWaitingHasToBeAskedFor(t *testing.T) {
	if got := (Backoff{Base: none}).Delay(9, math.MaxUint64); got != 0 {
		t.Errorf("no waiting waits %s", got)
	}
	if got := (Backoff{Base: time.Nanosecond}).Delay(1, 0); got != MinSpacing {
		t.Errorf("a tiny delay is %s, want %s", got, MinSpacing)
	}
	if got := (Backoff{}).Delay(1, 0); got != MinSpacing {
		t.Errorf("the least draw is %s, want %s", got, MinSpacing)
	}
}
