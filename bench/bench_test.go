package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie/bench/contest"
)

// TestMain makes the test's own program the child that measures.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == childWord {
		if err := run(context.Background(), os.Args[1:], os.Stdout, os.Stderr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestEverythingOnce measures every library in every scenario with few tasks,
// with all checks on.
func TestEverythingOnce(t *testing.T) {
	var out, log bytes.Buffer
	folder := t.TempDir()
	err := run(context.Background(), []string{"-rounds", "1", "-size", "100", "-report", "-json", "-dir", folder}, &out, &log)
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	var rep report
	if err := json.Unmarshal(out.Bytes(), &rep); err != nil {
		t.Fatal(err)
	}
	for _, s := range contest.Scenarios() {
		for _, e := range all() {
			list := rep.Results[key(s, e.Name)]
			if !e.Plays(s) {
				continue
			}
			if len(list) != 1 || list[0].Wall <= 0 || list[0].CPU <= 0 || list[0].Memory <= 0 || list[0].File <= 0 {
				t.Errorf("%s, %s: %+v", s, e.Name, list)
			}
		}
	}
	if len(rep.Targets) != len(targets()) {
		t.Errorf("%d targets, not %d", len(rep.Targets), len(targets()))
	}
	left, err := os.ReadDir(folder)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestTargets(t *testing.T) {
	second := func(n int) contest.Result { return contest.Result{N: n, Wall: time.Second, CPU: time.Second} }
	o := options{scenarios: []contest.Scenario{contest.Drain}, entrants: all()}
	rep := &report{Results: map[string][]contest.Result{}, options: o}
	for round, factor := range []int{1, 10, 2} { // the machine's speed; ratios do not care
		rep.add(contest.Drain, "nixie", second(1000*factor+round))
		rep.add(contest.Drain, "goqite", second(50*factor))
		rep.add(contest.Drain, "backlite", second(125*factor))
		rep.add(contest.Drain, "raw-zombiezen", second(1250*factor))
	}
	rep.finish()
	got := fmt.Sprint(rep.Targets)
	want := "[target drain 8.00 want 10.00 short target drain-of-raw 0.80 want 0.60 ok]"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if rep.Targets[0].Against != "backlite" || !rep.short() {
		t.Errorf("against %s, short %v", rep.Targets[0].Against, rep.short())
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
		"-peers-synchronous off":       "give NORMAL or FULL",
		"-cpuprofile x":                "-cpuprofile needs one scenario and one library",
		"drain":                        `"drain" is no flag`,
		"-scenarios drain -rounds 3":   "",
		"-libraries nixie -time 100ms": "",
	} {
		_, err := parse(strings.Fields(args), &bytes.Buffer{})
		if got := fmt.Sprint(err); want == "" && err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: %v, not %q", args, err, want)
		}
	}
}
