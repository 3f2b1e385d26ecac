package policy

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
)

func groupOf(t *testing.T, p *Policy, err error, m nixie.Message) (label, fingerprint string) {
	t.Helper()
	f := p.Diagnose(&nixie.Delivery{Message: m}, err, Attempt{})
	label, fingerprint = p.groups.of(f, &m)
	if l, print := SignatureOf(f, &m); l != label || print != fingerprint {
		t.Errorf("%v: the memory says %s %s, SignatureOf %s %s", err, label, fingerprint, l, print)
	}
	return label, fingerprint
}

// Failures with one name of a group are in one, and others are not, also when their text is that
// name.
func TestGroupNamedByHand(t *testing.T) {
	p, err := New(Config{GroupAs: []GroupRule{
		{regexp.MustCompile(`card .* was declined`), "declined"},
		{regexp.MustCompile(`declined`), "other bank"},
		{regexp.MustCompile(`secret`), "never: it is masked"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	body := nixie.Message{Body: []byte(`{"bank":"declined"}`)}
	label, first := groupOf(t, p, errors.New("card 17 was declined: no funds"), nixie.Message{})
	if label != "handler: declined" {
		t.Errorf("label %q", label)
	}
	same := map[string]error{
		"another text":     errors.New("the card of Ann was declined"),
		"another type":     fmt.Errorf("pay: %w", typed("card 9 was declined")),
		"a name by mark":   nixie.WithGroup(errors.New("no"), "declined"),
		"the outer mark":   nixie.WithGroup(nixie.WithGroup(errors.New("no"), "x"), "declined"),
		"a stack":          nixie.WithEvidence(errors.New("card a was declined"), nixie.Failure{Stack: goStack}),
		"a mark in a mark": fmt.Errorf("a: %w", nixie.WithGroup(errors.New("secret"), "declined")),
	}
	for name, e := range same {
		if _, got := groupOf(t, p, e, body); got != first {
			t.Errorf("%s: %s, want %s", name, got, first)
		}
	}
	for name, e := range map[string]error{
		"the second rule": errors.New("payment declined"),
		"a text":          nixie.WithGroup(errors.New("declined of no rule"), ""),
		"another name":    nixie.WithGroup(errors.New("card 1 was declined"), "mine"),
		"another class":   nixie.Permanent(errors.New("card 1 was declined")),
		"another reason":  nixie.WithReason(errors.New("card 1 was declined"), nixie.ReasonDependency),
		"another exit":    nixie.WithEvidence(errors.New("card 1 was declined"), nixie.Failure{ExitCode: new(int)}),
		"no rule":         errors.New("disk"),
	} {
		if _, got := groupOf(t, p, e, body); got == first {
			t.Errorf("%s: the same group", name)
		}
	}
	plain, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, got := groupOf(t, plain, errors.New("declined"), nixie.Message{}); got == first {
		t.Error("a text that equals the name is in its group")
	}
	hidden := p.Diagnose(&nixie.Delivery{}, errors.New("secret"), Attempt{Mask: func(f *nixie.Failure) { f.Text = "***" }})
	if hidden.Group != "" {
		t.Errorf("a rule saw what the mask hides: %q", hidden.Group)
	}
}

type typed string

func (e typed) Error() string { return string(e) }

const goStack = "goroutine 1 [running]:\nmain.a()\n"

// What group-as cannot take is refused by name, with the limit and the fix.
func TestGroupAsIsRefused(t *testing.T) {
	for value, want := range map[string]string{
		"declined":                         "give PATTERN=NAME",
		"=name":                            "give PATTERN=NAME",
		"pattern= ":                        "give PATTERN=NAME",
		"(a=name":                          "none of RE2",
		`(a)\1=name`:                       "none of RE2",
		"(?=a)=name":                       "none of RE2",
		strings.Repeat("a", 200) + "=b":    "202 bytes, the limit is 200",
		"(.{1000}x{1000})+=name":           "repeats too much, the limit is 1000",
		strings.Repeat(".{99}", 20) + "=b": "repeats too much",
	} {
		_, err := Document{}.With("group-as", value)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "group-as is ") {
			t.Errorf("%.40s: %v, want %s", value, err, want)
		}
	}
	many := make([]string, 21)
	for i := range many {
		many[i] = fmt.Sprintf("a%d=b", i)
	}
	d, err := Document{}.With("group-as", many...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Policy(); err == nil || !strings.Contains(err.Error(), "21 entries, the limit is 20") {
		t.Errorf("21 entries: %v", err)
	}
	if _, err := New(Config{GroupAs: []GroupRule{{nil, "x"}}}); err == nil {
		t.Error("an entry without a pattern is taken")
	}
	if _, err := (Document{}).With("case", "reason=timeout; group-as=a=b"); err == nil || !strings.Contains(err.Error(), "put it outside") {
		t.Errorf("in a case: %v", err)
	}
	back, err := ParseDocument("group-as=a=b=c d\ngroup-as=x=y")
	if err != nil || back.String() != "group-as=a=b=c d\ngroup-as=x=y" {
		t.Errorf("%q %v", back.String(), err)
	}
}

// A pattern that takes exponential time in other engines takes linear time, at the limit of texts.
func TestGroupAsIsLinear(t *testing.T) {
	text := strings.Repeat("a", nixie.MaxFailureText)
	p, err := New(Config{GroupAs: []GroupRule{{regexp.MustCompile(`(a*)*(a|aa)+(a?){30}b$`), "x"}}})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan string, 1)
	go func() { done <- p.Diagnose(&nixie.Delivery{}, typed(text), Attempt{}).Group }()
	select {
	case got := <-done:
		if got != "" {
			t.Errorf("group %q", got)
		}
	case <-time.After(time.Minute):
		t.Fatal("it goes on after a minute")
	}
}
