package policy

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// The rows are the formulas of other systems, computed by hand. A row with a cap also has the first
// n beyond the cap.
func TestR1_EveryFormulaOfTheSources(t *testing.T) {
	const ms, sec = time.Millisecond, time.Second
	for _, row := range []struct {
		name  string
		b     Backoff
		unit  time.Duration
		waits []time.Duration // after n = 1, 2, 3 …
		late  map[int]time.Duration
	}{
		{"fixed", Backoff{Formula: Fixed, Base: 7 * sec}, sec, []time.Duration{7, 7, 7, 7, 7, 7}, map[int]time.Duration{math.MaxInt: 7}},
		{"linear", Backoff{Formula: Linear, Base: sec, Step: 2 * sec}, sec, []time.Duration{1, 3, 5, 7, 9, 11},
			map[int]time.Duration{450: 899, 451: 900, math.MaxInt: 900}},
		{"exponential", Backoff{Base: sec, Cap: 30 * sec}, sec, []time.Duration{1, 2, 4, 8, 16, 30},
			map[int]time.Duration{7: 30, 10_000: 30}},
		{"reprocessing of prodigy", Backoff{Base: sec, Cap: 512 * sec}, sec, []time.Duration{1, 2, 4, 8, 16, 32},
			map[int]time.Duration{9: 256, 10: 512, 11: 512}},
		{"fibonacci", Backoff{Formula: Fibonacci, Base: sec}, sec, []time.Duration{1, 1, 2, 3, 5, 8},
			map[int]time.Duration{15: 610, 16: 900, 17: 900, math.MaxInt: 900}},
		{"list", Backoff{Formula: List, Delays: []time.Duration{5 * sec, 30 * sec, 120 * sec}}, sec,
			[]time.Duration{5, 30, 120, 900, 900}, map[int]time.Duration{math.MaxInt: 900}},
		{"list without cap", Backoff{Formula: List, Delays: []time.Duration{5 * sec, 30 * sec}, Cap: none}, sec,
			[]time.Duration{5, 30, 30}, nil},
		{"whizbang", Backoff{Base: 60 * sec, Cap: time.Hour}, sec, []time.Duration{60, 120, 240, 480, 960, 1920},
			map[int]time.Duration{7: 3600, 8: 3600}},
		{"whizbang, newer", Backoff{Base: 30 * sec, Cap: 300 * sec}, sec, []time.Duration{30, 60, 120, 240, 300, 300}, nil},
		{"kafka-dlc", Backoff{Base: 400 * ms, Cap: 10 * sec}, ms, []time.Duration{400, 800, 1600, 3200},
			map[int]time.Duration{5: 6400, 6: 10_000}},
		{"pgqueuer, in process", Backoff{Base: 100 * ms, Cap: 10 * sec}, ms, []time.Duration{100, 200, 400, 800},
			map[int]time.Duration{7: 6400, 8: 10_000}},
		{"pgqueuer, database", Backoff{Base: sec, Cap: 300 * sec}, sec, []time.Duration{1, 2, 4, 8, 16},
			map[int]time.Duration{9: 256, 10: 300}},
		{"wink", Backoff{Formula: Linear, Base: 60 * sec, Step: 60 * sec, Cap: 900 * sec}, sec, []time.Duration{60, 120, 180, 240},
			map[int]time.Duration{14: 840, 15: 900, 16: 900}},
		{"wink, consumer of dead letters", Backoff{Formula: Fixed, Base: time.Hour, Cap: time.Hour}, sec, []time.Duration{3600, 3600}, nil},
		{"function", Backoff{Formula: Custom, Func: func(n int) time.Duration { return time.Duration(n*n) * sec }}, sec,
			[]time.Duration{1, 4, 9, 16}, map[int]time.Duration{30: 900, 31: 900}},
	} {
		row.b.Jitter = JitterNone
		check := func(n int, want time.Duration) {
			t.Helper()
			if got := row.b.Delay(n, math.MaxUint64); got != want*row.unit {
				t.Errorf("%s, n=%d: %s, want %s", row.name, n, got, want*row.unit)
			}
		}
		for i, want := range row.waits {
			check(i+1, want)
		}
		for n, want := range row.late {
			check(n, want)
		}
	}
}

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

func delays() *rapid.Generator[time.Duration] {
	return rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.Int64Range(1, int64(nixie.MaxDelay)).Draw(t, "delay"))
	})
}

func backoffs() *rapid.Generator[Backoff] {
	return rapid.Custom(func(t *rapid.T) Backoff {
		b := Backoff{
			Formula:  rapid.SampledFrom(Formulas()).Draw(t, "formula"),
			Base:     delays().Draw(t, "base"),
			Factor:   rapid.Float64Range(1, MaxFactor).Draw(t, "factor"),
			Step:     delays().Draw(t, "step"),
			Cap:      max(delays().Draw(t, "cap"), MinSpacing),
			Jitter:   rapid.SampledFrom(Jitters()).Draw(t, "jitter"),
			Fraction: rapid.Float64Range(0.001, 1).Draw(t, "fraction"),
			From:     delays().Draw(t, "from"),
			Delays:   rapid.SliceOfN(delays(), 1, 9).Draw(t, "delays"),
		}
		b.To = b.From + min(delays().Draw(t, "range"), nixie.MaxDelay-b.From)
		b.Min = min(max(delays().Draw(t, "min")/8, MinSpacing), b.Cap)
		strange := delays().Draw(t, "strange")
		b.Func = func(n int) time.Duration {
			if n%7 == 0 {
				panic("a function that is not ours")
			}
			return strange * time.Duration(n) // overflows at times
		}
		return b
	})
}

func TestR2_JitterStaysWithinItsBand(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := backoffs().Draw(t, "backoff")
		if err := b.check(); err != nil {
			t.Fatal(err)
		}
		n := rapid.OneOf(rapid.IntRange(-1, 100), rapid.Int()).Draw(t, "n")
		random := rapid.Uint64().Draw(t, "random")
		ceiling, delay := b.Ceiling(n), b.Delay(n, random)
		least, most := b.Band(n)
		low, high := bandOf(b, ceiling)
		switch {
		case ceiling < 0 || ceiling > b.Cap:
			t.Fatalf("ceiling %s is outside 0…%s", ceiling, b.Cap)
		case delay < b.Min || delay > b.Cap:
			t.Fatalf("delay %s is outside %s…%s", delay, b.Min, b.Cap)
		case delay != b.Delay(n, random):
			t.Fatal("the same random number gave another delay")
		case delay < least || delay > most:
			t.Fatalf("delay %s is outside the band %s…%s", delay, least, most)
		case least != b.bounded(low) || most < b.bounded(high)-2 || most > b.bounded(high):
			t.Fatalf("band of %s is %s…%s, want %s…%s", ceiling, least, most, b.bounded(low), b.bounded(high))
		case n > 1 && (b.Formula == Exponential || b.Formula == Linear || b.Formula == Fibonacci) && b.Ceiling(n-1) > ceiling:
			t.Fatalf("ceiling falls from %s to %s", b.Ceiling(n-1), ceiling)
		}
	})
}

// bandOf returns the shortest and the longest delay of each jitter, before it is bounded.
func bandOf(b Backoff, d time.Duration) (low, high time.Duration) {
	part := time.Duration(float64(d) * b.Fraction)
	switch b.Jitter {
	case JitterFull:
		return 0, d
	case JitterEqual:
		return d - d/2, d
	case JitterProportional:
		return d - part, d + part
	case JitterAdditive:
		return d + b.From, d + max(b.To-1, b.From)
	}
	return d, d
}

func TestR2_BandsToTheNanosecond(t *testing.T) {
	b := Backoff{Formula: Fixed, Base: time.Second + 1, From: 5, To: 8}
	for jitter, want := range map[Jitter][2]time.Duration{
		JitterFull:         {MinSpacing, 1_000_000_001},
		JitterEqual:        {500_000_001, 1_000_000_001},
		JitterProportional: {700_000_001, 1_300_000_001},
		JitterAdditive:     {1_000_000_006, 1_000_000_008},
		JitterNone:         {1_000_000_001, 1_000_000_001},
	} {
		b.Jitter = jitter
		if least, most := b.Band(1); least != want[0] || most != want[1] {
			t.Errorf("%s: %d…%d, want %d…%d", jitter, least, most, want[0], want[1])
		}
	}
}

// The waits of many messages that fail together fill the whole band evenly, also at the cap.
func TestR2_FullJitterFillsTheBand(t *testing.T) {
	b := Backoff{Jitter: JitterFull}.or(defaultBackoff())
	const draws, bands = 20_000, 10
	var ids store.IDs
	for _, n := range []int{1, 4, 11, 10_000} {
		var hits [bands]int
		ceiling := b.Ceiling(n)
		for range draws {
			d := nixie.Delivery{Message: nixie.Message{ID: ids.New(noon), Generation: 1, Attempts: n}}
			hits[int64(b.Delay(n, randomOf(&d)))*bands/(int64(ceiling)+1)]++
		}
		for i, h := range hits {
			if h < draws/bands*85/100 || h > draws/bands*115/100 {
				t.Errorf("n=%d: band %d of %d took %d of %d draws", n, i, bands, h, draws)
			}
		}
	}
}

func TestRandomNumberFollowsTheAttempt(t *testing.T) {
	d := nixie.Delivery{Message: nixie.Message{ID: nixie.ID{1}, Generation: 1, Attempts: 1}}
	first := randomOf(&d)
	again := d
	if randomOf(&again) != first {
		t.Error("the same attempt has another random number")
	}
	for name, change := range map[string]func(*nixie.Delivery){
		"id":         func(d *nixie.Delivery) { d.ID[15] = 1 },
		"generation": func(d *nixie.Delivery) { d.Generation++ },
		"attempt":    func(d *nixie.Delivery) { d.Attempts++ },
	} {
		other := d
		change(&other)
		if randomOf(&other) == first {
			t.Errorf("another %s has the same random number", name)
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
	if got := (Backoff{Jitter: JitterFull}).Delay(1, 0); got != MinSpacing {
		t.Errorf("the least draw is %s, want %s", got, MinSpacing)
	}
	if got := (Backoff{}).Delay(1, 0); got != time.Second/2 {
		t.Errorf("the least draw of the default is %s, want half a second", got)
	}
}

// The next version has the same random numbers, so a history that is replayed gives the same waits.
func TestRandomNumbersDoNotChange(t *testing.T) {
	for n, want := range []time.Duration{722483252, 728806966, 3464045254, 3909075339, 13846946930, 17756958898, 61385530510} {
		d := nixie.Delivery{Message: nixie.Message{ID: nixie.ID{7}, Generation: 1, Attempts: n + 1}}
		if got := (Backoff{Jitter: JitterFull}).Delay(n+1, randomOf(&d)); got != want {
			t.Errorf("n=%d: %d, want %d", n+1, got, want)
		}
	}
}

// The cap of a consumer with a dead letter channel holds with its jitter too.
func TestAdditiveJitterEndsAtTheCap(t *testing.T) {
	b := mustNew(t, Config{Profile: "kafka-dlc"}).Config().Backoff
	for n, want := range map[int][2]time.Duration{
		1: {420 * time.Millisecond, 450*time.Millisecond - 1},
		5: {6420 * time.Millisecond, 6450*time.Millisecond - 1},
		6: {10 * time.Second, 10 * time.Second},
	} {
		if least, most := b.Band(n); least != want[0] || most != want[1] {
			t.Errorf("n=%d: %s…%s, want %s…%s", n, least, most, want[0], want[1])
		}
	}
}

func TestParseBackoff(t *testing.T) {
	for text, want := range map[string]Backoff{
		"": {},
		"exponential base=200ms factor=1.5 cap=10s jitter=none": {Formula: Exponential, Base: 200 * time.Millisecond, Factor: 1.5,
			Cap: 10 * time.Second, Jitter: JitterNone},
		"linear base=1m step=2m min=1s": {Formula: Linear, Base: time.Minute, Step: 2 * time.Minute,
			Min: time.Second},
		"list delays=5s,30s,2m cap=none": {Formula: List,
			Delays: []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute}, Cap: none},
		"jitter=proportional fraction=0.2": {Jitter: JitterProportional, Fraction: 0.2},
		"fixed base=3s jitter=additive from=20ms to=50ms": {Formula: Fixed, Base: 3 * time.Second, Jitter: JitterAdditive,
			From: 20 * time.Millisecond, To: 50 * time.Millisecond},
		"base=0": {Base: none},
	} {
		if got, err := ParseBackoff(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for text, word := range map[string]string{
		"base=1s linear":             `"linear"`,
		"custom":                     `"custom"`,
		"quadratic":                  "backoff formula",
		"base=fast":                  "500ms",
		"base=-1s":                   "500ms",
		"factor=x":                   "such as 2",
		"factor=0.5":                 "backoff factor",
		"speed=9":                    `no setting "speed"`,
		"list":                       "delays has 0",
		"list delays=1s,,2s":         "delays",
		"jitter=additive":            "set From and To",
		strings.Repeat("x", 1<<12+1): "4097 bytes",
	} {
		_, err := ParseBackoff(text)
		if nixie.CodeOf(err) != nixie.CodeInvalid || !strings.Contains(err.Error(), word) {
			t.Errorf("%.40q: %v does not say %s", text, err, word)
		}
	}
}

func FuzzParseBackoff(f *testing.F) {
	f.Add("exponential base=1s factor=2 cap=15m jitter=full", 3)
	f.Add("list delays=5s,30s cap=none jitter=proportional fraction=0.2", 9)
	f.Add("linear base=1m step=1m min=1s jitter=additive from=1s to=2s", 1)
	f.Fuzz(func(t *testing.T, text string, n int) {
		b, err := ParseBackoff(text)
		if err != nil {
			return
		}
		if d := b.Delay(n, uint64(len(text))); d < 0 || d > nixie.MaxDelay || b.String() == "" {
			t.Errorf("%q: %s, %s", text, b, d)
		}
	})
}
