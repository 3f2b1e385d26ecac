package main

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestTally(t *testing.T) {
	for _, tc := range []struct {
		name   string
		stream string
		shown  string // part of what is printed
		hidden string // not printed
		sum    string // the last line
		err    string
	}{
		{
			"passed",
			`{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"noise\n"}
{"Action":"pass","Package":"p","Test":"TestA/sub"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}
{"Action":"pass","Package":"p"}`,
			"ok  \tp\t0.1s\n", "noise", "2 passed, 0 failed", "",
		},
		{
			"failed",
			`{"Action":"output","Package":"p","Test":"TestA","Output":"a_test.go:3: wrong\n"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestB"}
{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}
{"Action":"fail","Package":"p"}`,
			"a_test.go:3: wrong", "", "1 passed, 1 failed", "tests failed",
		},
		{
			"died",
			`{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"panic: x\n"}
{"Action":"fail","Package":"p"}`,
			"panic: x\n--- NO RESULT: TestA (p)", "", "0 passed, 1 failed", "tests failed",
		},
		{
			"did not build",
			`{"Action":"build-output","ImportPath":"p","Output":"a.go:1: undefined\n"}
{"Action":"build-fail","ImportPath":"p"}
{"Action":"output","Package":"p","Output":"FAIL\tp [build failed]\n"}
{"Action":"fail","Package":"p","FailedBuild":"p"}`,
			"a.go:1: undefined", "", "0 passed, 1 failed", "tests failed",
		},
		{
			"skipped",
			`{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:3: needs Redis\n"}
{"Action":"skip","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestB"}`,
			"skipped TestA (p): needs Redis\n1 skipped\n", "", "1 passed, 0 failed", "",
		},
		{"nothing", ``, "", "", "0 passed, 0 failed", "no test ran"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out strings.Builder
			sum := newTally(&out)
			if _, err := sum.read(strings.NewReader(tc.stream)); err != nil {
				t.Fatal(err)
			}
			err := sum.close()
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || err.Error() != tc.err) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
			got := out.String()
			if !strings.HasSuffix(got, tc.sum+"\n") || !strings.Contains(got, tc.shown) || tc.hidden != "" &&
				strings.Contains(got, tc.hidden) {
				t.Errorf("printed\n%s", got)
			}
		})
	}
}

func TestSplit(t *testing.T) {
	packages := []string{modulePrefix + "redrive", modulePrefix + "internal/proof/arch"}
	got := split(packages, true)
	if len(got) != 2 || got[0].options != nil || !slices.Equal(got[1].packages, packages[:1]) ||
		!slices.Equal(got[1].options, []string{"-race"}) {
		t.Errorf("with race: %v", got)
	}
	store := []string{modulePrefix + "store/sqlite"}
	if got = split(store, true); len(got) != 2 || got[0].options != nil || !slices.Contains(got[1].options, "-run") ||
		!slices.Equal(got[1].packages, store) {
		t.Errorf("of both kinds: %v", got)
	}
	some := []string{modulePrefix + "redrive", modulePrefix + "store/postgres"}
	pattern := specials[0].without
	if got = split(some, true); len(got) != 3 || !slices.Equal(got[0].options, []string{"-race", "-skip", pattern}) ||
		!slices.Equal(got[1].packages, some[:1]) || !slices.Equal(got[2].options, []string{"-run", pattern}) {
		t.Errorf("each test once: %v", got)
	}
	if got = split(packages, false); len(got) != 1 || !slices.Equal(got[0].packages, packages) {
		t.Errorf("without race: %v", got)
	}
}

func TestLong(t *testing.T) {
	got := long([]string{modulePrefix + "worker", modulePrefix + "store/sqlite"})
	if !slices.Equal(got.packages, []string{modulePrefix + "store/sqlite"}) || !strings.Contains(got.options[1], "|TestKills|") {
		t.Errorf("a long run is %v", got)
	}
}

// TestLongestFirst: the others keep their order, and every package that is named here
// is there.
func TestLongestFirst(t *testing.T) {
	got, err := list(t.Context(), []string{"../../../broker/...", "../../../store/..."})
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Fields("store/postgres broker/kafka store/sqlite broker/redis broker/rabbitmq broker/redis/foreign store/memory " +
		"broker broker/brokertest store store/engine store/itemdir store/lifecycle store/storetest")
	for i, name := range want {
		want[i] = modulePrefix + name
	}
	if !slices.Equal(got, want) {
		t.Errorf("the order is %q, want %q", got, want)
	}
	for _, s := range specials {
		source, err := exec.CommandContext(t.Context(), "grep", "-rhE", "^func Test", "../../../"+s.path).Output()
		if err != nil && s.path != "cmd/nixie" {
			t.Errorf("no tests in %s: %v", s.path, err)
		}
		for _, part := range strings.Split(strings.Trim(s.race, "^$"), "|") {
			part, _, _ = strings.Cut(strings.Trim(part, "^$"), "$/")
			if part != unraced && !strings.Contains(string(source), part) {
				t.Errorf("no test of %s has %s in its name", s.path, part)
			}
		}
		names := strings.TrimSuffix(strings.TrimPrefix(s.without, "^Test("), ")$")
		for _, name := range strings.Split(names, "|") {
			if s.without != "" && !regexp.MustCompile(`(?m)^func Test`+name+`\(t `).Match(source) {
				t.Errorf("no test of %s is called Test%s", s.path, name)
			}
		}
	}
}
