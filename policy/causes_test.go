package policy

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/proof/grouping"
)

// TestBadInput shows that what no tool should print, and what no body should be, is one line of a
// group all the same. Quadratic time would take minutes.
func TestBadInput(t *testing.T) {
	words := strings.Join(numbered("word", 900), " ")
	everyWord := `["` + strings.ReplaceAll(words, " ", `","`) + `"]`
	frames := strings.Repeat("\tat shop.Cart.pay(Cart.java:1)\n", 10_000)
	circle := strings.Repeat("Caused by: a.B: x\n\tat shop.Cart.pay(Cart.java:1)\n", 5_000)
	huge := strings.Repeat("x", 16<<20)
	for name, c := range map[string]struct{ stderr, stack, body, want string }{
		"1 MB in one line":            {"error: " + strings.Repeat("x", 1<<20), "", "", "error: xxx"},
		"1 MB of words in one line":   {"error: " + strings.Repeat("item 7, ", 1<<17), "", "", "error: item <n>"},
		"no newline":                  {"fatal: no rate", "", "", "fatal: no rate"},
		"colours":                     {"\x1b[1m\x1b[31merror\x1b[0m: no rate\x1b[K\n", "", "", "error: no rate"},
		"a title and a link":          {"\x1b]0;shop\aerror: no \x1b]8;;https://a.example\arate\x1b]8;;\a\n", "", "", "error: no rate"},
		"a progress bar":              {strings.Repeat("50% [=====>     ]\r", 1<<16) + "error: no rate\n", "", "", "error: no rate"},
		"UTF-16":                      {"\xff\xfee\x00r\x00r\x00o\x00r\x00:\x00 \x00n\x00o\x00\n\x00", "", "", "error: no"},
		"zero bytes":                  {"error: no\x00rate\x00\n", "", "", "error: no"},
		"10,000 frames on the output": {"a.B: x\n" + frames, "", "", "a.B: x"},
		"10,000 frames":               {"error: no rate", "a.B: x\n" + frames, "", "in shop.Cart.pay"},
		"causes in a circle":          {"error: no rate", "a.B: x\n" + circle, "", "in shop.Cart.pay"},
		"a body of 16 MB":             {"error: alice is gone", "", `{"user":"alice","x":"` + huge + `"}`, "alice is gone"},
		"a body with every word":      {"error: " + words, "", everyWord, "error: <field>"},
		"a body that opens only":      {"error: alice is gone", "", strings.Repeat(`{"a":[`, 10_000), "alice is gone"},
		"a body of zeros":             {"error: alice is gone", "", strings.Repeat("\x00", 1<<16), "alice is gone"},
	} {
		f := &nixie.Failure{Reason: nixie.ReasonCommandFailed, Text: WhyOf([]byte(c.stderr), nil), Stack: c.stack}
		label, _ := SignatureOf(f, &nixie.Message{Body: []byte(c.body)})
		checkLabel(t, label)
		if !strings.Contains(label, c.want) {
			t.Errorf("%s: %.200q, want %q", name, label, c.want)
		}
	}
}

// floorOneGroup is the least share of the causes whose variants all are one group.
const floorOneGroup = 0.95

// tally counts the causes of a tool or of a language.
type tally struct{ causes, one, two, more, variants, byHand int }

// What real tools print is grouped by its cause: no two causes are one group, and the variants of
// one are one group, seldom two.
func TestCausesOfTools(t *testing.T) {
	list, err := grouping.Causes("testdata/causes.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	groups := map[string]string{}             // fingerprint to cause
	of := map[string]map[string]string{}      // cause to fingerprints and their labels
	without := map[string]map[string]string{} // the same without the item
	tools, languages := map[string]*tally{}, map[string]*tally{}
	first := map[string]grouping.Cause{}
	for _, c := range list {
		label, fingerprint := SignatureOf(failureOf(c), &nixie.Message{Body: c.Item})
		if other, known := groups[fingerprint]; known && other != c.Label() {
			t.Errorf("%s and %s are one group: %s", other, c.Label(), label)
		}
		groups[fingerprint] = c.Label()
		addGroup(of, c.Label(), fingerprint, label)
		label, fingerprint = Signature(failureOf(c))
		addGroup(without, c.Label(), fingerprint, label)
		first[c.Label()] = c
		tallyOf(tools, c.Tool).variants++
		tallyOf(languages, c.Language).variants++
	}
	one, alone := 0, 0
	for name, labels := range of {
		c := first[name]
		for _, tally := range [...]*tally{tallyOf(tools, c.Tool), tallyOf(languages, c.Language)} {
			tally.add(len(labels), c.ByHand)
		}
		switch {
		case len(labels) == 1:
			one++
		case len(labels) > 2:
			t.Errorf("%s is %d groups: %v", name, len(labels), labels)
		default:
			t.Logf("%s is two groups: %v", name, labels)
		}
		if len(without[name]) == 1 {
			alone++
		}
	}
	printTallies(t, "tool", tools)
	printTallies(t, "language", languages)
	t.Logf("%d of %d causes are one group, %d without the item", one, len(of), alone)
	if share := float64(one) / float64(len(of)); share < floorOneGroup {
		t.Errorf("the variants of %.3f of the causes are one group, want %.2f", share, floorOneGroup)
	}
	checkCorpus(t, list, tools, languages)
	ablate(t, list)
}

// ablate prints what each mask does for the causes. The item is left out, as it does most of it.
func ablate(t *testing.T, list []grouping.Cause) {
	texts := make([]string, len(list))
	for i, c := range list {
		texts[i] = failureOf(c).Text
	}
	for kind := range allMasks {
		members := make([]grouping.Pair, len(list))
		for i, c := range list {
			n := normaliser{text: texts[i], without: 1 << kind}
			members[i] = grouping.Pair{Label: c.Label(), Group: string(n.all())}
		}
		s := grouping.Of(members)
		t.Logf("without %-8s: precision %.3f, recall %.3f, exact %.3f", maskNames[kind], s.Precision, s.Recall, s.Exact)
	}
}

// failureOf returns what a worker makes of a cause.
func failureOf(c grouping.Cause) *nixie.Failure {
	why := cmp.Or(WhyOf([]byte(c.Stderr), []byte(c.Stdout)), fmt.Sprintf("exit status %d", c.Exit))
	class, reason := OfCommand(c.Tool, c.Exit, why)
	return &nixie.Failure{Class: class, Reason: reason, Text: why, ExitCode: &c.Exit}
}

func addGroup(to map[string]map[string]string, name, fingerprint, label string) {
	if to[name] == nil {
		to[name] = map[string]string{}
	}
	to[name][fingerprint] = label
}

func tallyOf(of map[string]*tally, name string) *tally {
	if of[name] == nil {
		of[name] = new(tally)
	}
	return of[name]
}

func (c *tally) add(groups int, byHand bool) {
	c.causes++
	switch groups {
	case 1:
		c.one++
	case 2:
		c.two++
	default:
		c.more++
	}
	if byHand {
		c.byHand++
	}
}

func printTallies(t *testing.T, kind string, of map[string]*tally) {
	for _, name := range slices.Sorted(maps.Keys(of)) {
		c := of[name]
		t.Logf("%s %-10s: %2d causes of %3d variants (%d by hand): %2d one group, %d two, %d more",
			kind, name, c.causes, c.variants, c.byHand, c.one, c.two, c.more)
	}
}

// ofMachine matches what tells where the causes were made.
var ofMachine = regexp.MustCompile(`(?:^|\W)(?:root|tmp|work|home|Users)/|pyenv|registry\.npmjs|pypi\.org|crates\.io|apache\.org/maven`)

// checkCorpus checks that the causes are as many and as different as they claim.
func checkCorpus(t *testing.T, list []grouping.Cause, tools, languages map[string]*tally) {
	byHand, variants := map[string]bool{}, map[string]int{}
	for _, c := range list {
		variants[c.Label()]++
		if c.ByHand {
			byHand[c.Label()] = true
		}
		if text := c.Stderr + c.Stdout + string(c.Item); ofMachine.MatchString(text) {
			t.Errorf("%s tells of the machine that made it: %s", c.Label(), ofMachine.FindString(text))
		}
	}
	for name, n := range variants {
		if n != 15 {
			t.Errorf("%s has %d variants", name, n)
		}
	}
	for name, c := range tools {
		if c.causes < 2 {
			t.Errorf("%s has one cause only", name)
		}
	}
	if len(tools) < 25 || len(languages) < 10 || len(byHand) > 5 { // nine languages, and "-"
		t.Errorf("%d tools, %d languages, %d causes by hand", len(tools), len(languages), len(byHand))
	}
}
