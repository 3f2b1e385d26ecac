package match

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie/bench/contest"
)

// small is a programme whose entrants cannot be called.
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
			{Name: "drain", Scenario: contest.Drain, Against: Kind(contest.Peer), Least: 10},
			{Name: "drain-of-quick", Scenario: contest.Drain, Against: Named("quick"), Least: 5},
			{Name: "drain-of-raw", Scenario: contest.Drain, Against: Kind(contest.Limit), Most: 1.5},
			{Name: "pick-up", Scenario: contest.PickUp, Cost: FromReturn, Against: Kind(contest.Peer), Most: 1.3},
			{Name: "pick-up-late", Scenario: contest.PickUp, Cost: LateFromReturn, Than: contest.PickUp, ThanCost: FromReturn, Most: 3},
			{Name: "pick-up-fixed", Scenario: contest.PickUp, Cost: FromReturn, Fixed: 20 * time.Millisecond, Most: 1},
			{Name: "pick-up-server", Scenario: contest.PickUp, Cost: Server, Against: Named("unknown"), Most: 1},
		},
	}
}

// The machine's speed does not count, because only results of the same round are compared. The best
// of the others costs the least processor time; by the clock another may be best.
func TestTargets(t *testing.T) {
	drained := func(cpu, wall time.Duration) contest.Result {
		return contest.Result{N: 1000, Wall: wall, CPU: cpu / 2, ServerCPU: cpu - cpu/2}
	}
	waited := func(p50, p99 time.Duration) contest.Result {
		return contest.Result{N: 1000, Wall: time.Second, CPU: time.Second,
			Latency: &contest.Latency{FromReturn: contest.Quantiles{P50: p50, P99: p99}}}
	}
	p := small()
	rep := &report{Results: map[string][]contest.Result{}, programme: p, options: options{scenarios: p.Scenarios, entrants: p.Entrants}}
	for _, slow := range []time.Duration{1, 10, 2} {
		rep.add(contest.Drain, "nixie", drained(slow*time.Second, slow*time.Second))
		rep.add(contest.Drain, "slow", drained(slow*20*time.Second, slow*4*time.Second))
		rep.add(contest.Drain, "quick", drained(slow*8*time.Second, slow*5*time.Second))
		rep.add(contest.Drain, "raw", drained(slow*800*time.Millisecond, slow*time.Second))
		rep.add(contest.PickUp, "nixie", waited(slow*13*time.Millisecond, slow*26*time.Millisecond))
		rep.add(contest.PickUp, "slow", waited(slow*20*time.Millisecond, slow*30*time.Millisecond))
		rep.add(contest.PickUp, "quick", waited(slow*10*time.Millisecond, slow*30*time.Millisecond))
	}
	rep.finish()
	var got []string
	for _, v := range rep.Targets {
		got = append(got, v.String())
	}
	want := []string{
		"target drain 8.00 want 10.00 short (against quick; by the clock 5.00)",
		"target drain-of-quick 8.00 want 5.00 ok (against quick; by the clock 5.00)",
		"target drain-of-raw 1.25 want at most 1.50 ok (against raw; by the clock 1.00)",
		"target pick-up 1.30 want at most 1.30 ok (against quick)",
		"target pick-up-late 2.00 want at most 3.00 ok (against pick-up)",
		"target pick-up-fixed 1.30 want at most 1.00 short (against 20ms)",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if x := rep.Summaries[1]; x.Library != "slow" || fmt.Sprintf("%.1f %.1f", x.NixieRatio, x.CPURatio) != "4.0 20.0" {
		t.Errorf("against the slow one: %+v", x)
	}
	if !rep.short() {
		t.Error("nothing is short")
	}
}

// TestReadme writes a run into its section of a document, twice.
func TestReadme(t *testing.T) {
	p := small()
	p.Name = "small"
	rep := &report{Results: map[string][]contest.Result{}, programme: p,
		options: options{scenarios: p.Scenarios[:1], entrants: p.Entrants[:3]}}
	rep.add(contest.Drain, "nixie", contest.Result{N: 1_234_567, Wall: time.Second, CPU: time.Second})
	rep.add(contest.Drain, "slow", contest.Result{N: 1000, Wall: time.Second, CPU: time.Second})
	rep.finish()
	path := filepath.Join(t.TempDir(), "README.md")
	if err := os.WriteFile(path, []byte("before\n<!-- run small -->\nold\n<!-- end of run small -->\nafter\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := rep.writeReadme(path); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"before\n<!-- run small -->\n\n", "\n| drain | 1,234,567 (0.8) | 1,000 (1000.0) |  |\n",
		"\n| drain | 1234.57 | 10.00 | ok | 1234.57 | slow |\n", "\n<!-- end of run small -->\nafter\n"} {
		if strings.Count(string(text), want) != 1 {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if _, err := between("nothing", "small", ""); err == nil {
		t.Error("a document without marks was written")
	}
}

// TestColumns: a table shows only measured columns.
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
