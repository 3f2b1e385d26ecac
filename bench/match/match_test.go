package match

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie/bench/contest"
)

// small is a programme without anybody to call.
func small() *Programme {
	return &Programme{
		Scenarios: []contest.Scenario{contest.Drain, contest.PickUp},
		Entrants: []contest.Entrant{
			{Name: "nixie", Kind: contest.Ours},
			{Name: "slow", Kind: contest.Peer},
			{Name: "quick", Kind: contest.Peer},
			{Name: "raw", Kind: contest.Limit},
		},
		Targets: []Target{
			{Name: "drain", Scenario: contest.Drain, Against: Kind(contest.Peer), Want: 10},
			{Name: "drain-of-raw", Scenario: contest.Drain, Against: Kind(contest.Limit), Want: 0.6},
			{Name: "drain-at-least", Scenario: contest.Drain, Limit: 1000, Want: 1},
			{Name: "pick-up", Scenario: contest.PickUp, Against: Kind(contest.Peer), Want: 1},
		},
	}
}

func TestTargets(t *testing.T) {
	second := func(n int) contest.Result { return contest.Result{N: n, Wall: time.Second, CPU: time.Second} }
	p := small()
	rep := &report{Results: map[string][]contest.Result{}, programme: p, options: options{scenarios: p.Scenarios, entrants: p.Entrants}}
	for round, factor := range []int{1, 10, 2} { // the machine's speed; ratios do not care
		rep.add(contest.Drain, "nixie", second(1000*factor+round))
		thrifty := second(50 * factor)
		thrifty.CPU, thrifty.ServerCPU = time.Second/4, time.Second/4
		rep.add(contest.Drain, "slow", thrifty)
		rep.add(contest.Drain, "quick", second(125*factor))
		rep.add(contest.Drain, "raw", second(1250*factor))
	}
	rep.finish()
	got := fmt.Sprint(rep.Targets)
	want := "[target drain 8.00 want 10.00 short target drain-of-raw 0.80 want 0.60 ok target drain-at-least 2.00 want 1.00 ok]"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if x := rep.Summaries[1]; x.Library != "slow" || fmt.Sprintf("%.1f %.1f", x.NixieRatio, x.CPURatio) != "20.0 10.0" {
		t.Errorf("against the slow one: %+v", x)
	}
	if rep.Targets[0].Against != "quick" || !rep.short() {
		t.Errorf("against %s, short %v", rep.Targets[0].Against, rep.short())
	}
}

// TestColumns: a table shows what was measured and nothing else.
func TestColumns(t *testing.T) {
	list := []summary{{Scenario: contest.Drain, Rate: 5, File: 1 << 20}, {Scenario: contest.Streams, WAL: 3}}
	var heads []string
	for _, c := range columns(contest.Drain, list) {
		heads = append(heads, c.head)
	}
	if got := strings.Join(heads, ", "); got != "1/s, file MiB" {
		t.Error(got)
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		list []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 3, 2}, 2.5}} {
		if got := median(c.list); got != c.want {
			t.Errorf("median of %v is %v, not %v", c.list, got, c.want)
		}
	}
}

func TestOptions(t *testing.T) {
	for args, want := range map[string]string{
		"-rounds 0":                    "-rounds is 0: give 1 to 100",
		"-size 5":                      "-size is 5: give 100 to 5000000, or 0",
		"-time 1ns":                    "-time is 1ns",
		"-scenarios drain,dig":         `scenario "dig" is not known`,
		"-libraries celery":            `library "celery" is not known`,
		"-cpuprofile x":                "-cpuprofile needs one scenario and one library",
		"-steady 1s":                   "-steady needs one library and one scenario",
		"-steady 1s -rate 0":           "-steady is 1s at -rate 0: give up to 24h0m0s, and 1 to 1000000",
		"drain":                        `"drain" is no flag`,
		"-scenarios drain -rounds 3":   "",
		"-libraries nixie -time 100ms": "",
	} {
		_, err := small().parse(strings.Fields(args), &bytes.Buffer{})
		if got := fmt.Sprint(err); want == "" && err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: %v, not %q", args, err, want)
		}
	}
}
