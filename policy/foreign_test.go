package policy

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/nixie-go/nixie"
)

// Errors of other programs and languages have the reasons that testdata/foreign.tsv says. To our
// own handlers and commands the table gives only the reasons that time may heal. Every row of it
// has a line there.
func TestForeign(t *testing.T) {
	data, err := os.ReadFile("testdata/foreign.tsv")
	if err != nil {
		t.Fatal(err)
	}
	right, all, used := map[string]int{}, map[string]int{}, map[int]bool{}
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(strings.TrimRight(line, "\n"), "\t")
		by, kind, text, causes := cells[0], cells[3], cells[4], cells[5:]
		want := nixie.Reason(strings.TrimPrefix(cells[2], "-"))
		all[by]++
		if got := ForeignReason(kind, text, causes...); got != want {
			t.Errorf("%s: %s: %s: %q, want %q", by, kind, text, got, want)
			continue
		}
		right[by]++
		if of := passingReason(kind, text); of != "" && !passes(of) {
			t.Errorf("%s: %s: %s: own failures become %s", by, kind, text, of)
		}
		class, _ := OfCommand("sh", 1, strings.TrimPrefix(kind+": "+text, ": "))
		if class != nixie.ClassUnknown && !passes(want) {
			t.Errorf("%s: %s: %s: a command is %s", by, kind, text, class)
		}
		for i := range foreign {
			for _, said := range append(causes, kind, text) {
				used[i] = used[i] || hasPhrase(i, said)
			}
		}
	}
	for _, by := range slices.Sorted(maps.Keys(all)) {
		t.Logf("%-9s %2d of %2d", by, right[by], all[by])
	}
	for i := range foreign {
		if !used[i] {
			t.Errorf("row %d of the table, %s %s, has no line in testdata/foreign.tsv", i, foreign[i].tool, foreign[i].reason)
		}
	}
}

func hasPhrase(row int, text string) bool {
	text = strings.ToLower(text)
	for phrase := range strings.SplitSeq(foreign[row].said, "|") {
		begin, end, _ := strings.Cut(strings.TrimPrefix(phrase, "*"), "*")
		if strings.Contains(text, begin) && strings.Contains(text, end) {
			return true
		}
	}
	return false
}

// A handler of our own whose error tells that something is away, slow or full is transient. What
// the handler or a rule says wins, and no text makes a failure permanent.
func TestForeignOwnHandlers(t *testing.T) {
	p, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		err    error
		class  nixie.Class
		reason nixie.Reason
	}{
		{said("Errno::ECONNREFUSED"), nixie.ClassTransient, nixie.ReasonTransportUnavailable},
		{said("POST /charge: dial tcp 10.0.0.7:443: connect: connection refused"), nixie.ClassTransient, nixie.ReasonTransportUnavailable},
		{said("psql: FATAL:  sorry, too many clients already"), nixie.ClassTransient, nixie.ReasonResource},
		{said("password authentication failed for user a"), nixie.ClassUnknown, nixie.ReasonHandler},
		{said("json: cannot unmarshal string"), nixie.ClassUnknown, nixie.ReasonHandler},
		{nixie.Permanent(said("connection refused")), nixie.ClassPermanent, nixie.ReasonHandler},
		{nixie.WithReason(said("connection refused"), nixie.ReasonValidation), nixie.ClassPermanent, nixie.ReasonValidation},
		{said("the connection was not refused by anyone"), nixie.ClassUnknown, nixie.ReasonHandler},
	} {
		f := p.Diagnose(&nixie.Delivery{}, c.err, Attempt{})
		if f.Class != c.class || f.Reason != c.reason {
			t.Errorf("%v: %s %s, want %s %s", c.err, f.Class, f.Reason, c.class, c.reason)
		}
	}
}

type said string

func (s said) Error() string { return string(s) }

// A phrase counts as whole words only, at any length of the text.
func TestForeignWholeWords(t *testing.T) {
	for text, want := range map[string]nixie.Reason{
		"timed out":     nixie.ReasonTimeout,
		"untimed out":   "",
		"timed outside": "",
		"timed_out":     "",
		strings.Repeat("no word ", 100_000) + "EPIPE": nixie.ReasonTransportUnavailable,
		strings.Repeat("x", 1<<20):                    "",
		"timeout of 5s exceeded":                      nixie.ReasonTimeout,
		"timeout of 5 s exceeded":                     "",
		"timeout of ":                                 "",
	} {
		if got := ForeignReason("", text); got != want {
			t.Errorf("%.40q: %q, want %q", text, got, want)
		}
	}
}

// BenchmarkForeign measures what the table costs each failure of a handler.
func BenchmarkForeign(b *testing.B) {
	text := "order 4711 of user 17: the card was declined by the bank of the customer: insufficient funds, try another one"
	for b.Loop() {
		passingReason("*errors.errorString", text)
	}
}
