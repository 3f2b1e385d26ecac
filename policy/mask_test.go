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

// hideSecret is a mask like those of package privacy. It knows one secret, and only as a whole.
func hideSecret(secret string) func(*nixie.Failure) {
	return func(f *nixie.Failure) {
		for _, text := range [...]*string{&f.Text, &f.Type, &f.Stack, &f.Step, &f.LogLocation} {
			*text = strings.ReplaceAll(*text, secret, "***")
		}
		for i := range f.Context {
			f.Context[i] = strings.ReplaceAll(f.Context[i], secret, "***")
		}
		for i := range f.Attachments {
			f.Attachments[i].Data = []byte(strings.ReplaceAll(string(f.Attachments[i].Data), secret, "***"))
		}
	}
}

// allTexts joins all texts of a settlement.
func allTexts(s nixie.Settlement) string {
	f := *s.Failure
	f.Err = nil
	text := fmt.Sprintf("%+v %+v %s", f, s.Burial, s.Note)
	for _, a := range f.Attachments {
		text += string(a.Data)
	}
	return text
}

// The mask runs before texts are cut, before matchers see them and before groups are named. So no
// half of a secret is left, and failures that differ only in a secret are one group.
func TestR24_MaskedBeforeCutAndNamed(t *testing.T) {
	p, err := New(Config{MaxAttempts: 1, ClassRules: []ClassRule{{When: MatchText(regexp.MustCompile(`hidden: \*\*\*`)),
		Reason: nixie.ReasonAuth}}})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, secret := range []string{"sWordFish-81726354", "hunterHunter99887766", "9f8e7d6c5b4a39281706"} {
		for _, at := range []int{0, nixie.MaxFailureText*3/4 - 40, nixie.MaxFailureText - 8, nixie.MaxFailureText + 100,
			2 * nixie.MaxFailureText} {
			text := "hidden: " + secret + strings.Repeat("a ", at/2) + secret + strings.Repeat(" b", nixie.MaxFailureText)
			stack := strings.Repeat("x ", nixie.MaxStack/2-5) + secret + strings.Repeat(" y", nixie.MaxStack)
			cause := nixie.WithEvidence(fmt.Errorf("dial %s: %w", secret, errors.New(text)), nixie.Failure{
				Stack: stack, Step: secret, LogLocation: strings.Repeat("z ", maxContextLine/2-5) + secret, Context: []string{secret},
				Attachments: []nixie.Attachment{{Name: "stderr", Data: []byte(secret[8:] + "\n" + secret + "\nend"), Truncated: 8}},
			})
			d := &nixie.Delivery{Message: nixie.Message{Attempts: 1, Deliveries: 1, EnqueuedAt: noon}}
			f := p.Diagnose(d, cause, Attempt{StartedAt: noon, FailedAt: noon.Add(time.Second), Mask: hideSecret(secret)})
			s := p.Decide(d, f, noon)
			for n := range len(secret) - 5 {
				if part := secret[n : n+6]; strings.Contains(allTexts(s), part) {
					t.Fatalf("%q is left, secret at %d", part, at)
				}
			}
			if s.Failure.Reason != nixie.ReasonAuth || string(s.Failure.Attachments[0].Data) != "***\nend" ||
				s.Failure.Attachments[0].Truncated != 8+int64(len(secret))-8+1 {
				t.Fatalf("reason %s, attachment %q after %d", s.Failure.Reason, s.Failure.Attachments[0].Data,
					s.Failure.Attachments[0].Truncated)
			}
			checkFailure(t, f)
			if at == 0 {
				seen[s.Burial.Fingerprint+s.Burial.Signature] = true
			}
		}
	}
	if len(seen) != 1 {
		t.Errorf("failures that differ in their secret are %d groups: %v", len(seen), seen)
	}
}

// Of a text that is too long the mask gets the two ends, without broken words.
func TestR24_EndsOfAHugeText(t *testing.T) {
	for _, text := range []string{strings.Repeat("word ", maxMasked), strings.Repeat("x", 3*maxMasked),
		"begin " + strings.Repeat("y", 3*maxMasked) + " end"} {
		var saw string
		f := strict(t).Diagnose(&nixie.Delivery{}, errors.New(text), Attempt{Mask: func(f *nixie.Failure) { saw = f.Text }})
		if len(saw) > maxMasked+100 || strings.Contains(saw, "xx") || strings.Contains(saw, "yy") || strings.Contains(saw, "wo …") {
			t.Errorf("the mask saw %d bytes: %.30s", len(saw), saw)
		}
		checkFailure(t, f)
	}
}

// A mask that panics lets nothing through.
func TestR24_MaskThatPanics(t *testing.T) {
	cause := nixie.WithEvidence(errors.New("password=hunter2"), nixie.Failure{Stack: "hunter2", Context: []string{"hunter2"},
		Attachments: []nixie.Attachment{{Name: "x", Data: []byte("hunter2")}}})
	f := strict(t).Diagnose(&nixie.Delivery{}, cause, Attempt{Mask: func(*nixie.Failure) { panic("a defect") }})
	checkFailure(t, f)
	if text := allTexts(nixie.Settlement{Failure: f}); strings.Contains(text, "hunter2") || !strings.Contains(f.Text, "withheld") {
		t.Errorf("it let through %s", text)
	}
}

// An attachment that is one huge broken line is left out as a whole.
func TestDropBrokenLine(t *testing.T) {
	for _, c := range []struct {
		data, want string
		truncated  int64
	}{
		{"whole\nlines", "whole\nlines", 0}, {"oken\nnext", "next", 7}, {"oken next word", "next word", 7},
		{strings.Repeat("x", maxBrokenLine+5), "xxxxx", 7}, {"", "", 7},
	} {
		a := nixie.Attachment{Data: []byte(c.data), Truncated: c.truncated}
		dropBrokenLine(&a)
		if string(a.Data) != c.want || a.Truncated-c.truncated != int64(len(c.data)-len(c.want)) {
			t.Errorf("%.20q became %.20q after %d", c.data, a.Data, a.Truncated)
		}
	}
}

// Of an output of which both ends are kept, the lines at the cut are left out, and no more.
func TestJoinEnds(t *testing.T) {
	for _, c := range []struct {
		first, last string
		between     int64
		want        string
		cut         int64
	}{
		{"a\nb", "c\nd", 0, "a\nbc\nd", 0},
		{"a\npass", "word\nd", 9, "a\n…[18 bytes cut]…\nd", 18},
		{"pass", "word\nd", 9, "word\nd", 13},
		{"a\n", "word next", 1, "a\n…[6 bytes cut]…\nnext", 6},
		{"a\n", "", 1, "a\n…[1 bytes cut]…\n", 1},
	} {
		data, cut := JoinEnds([]byte(c.first), []byte(c.last), c.between)
		if string(data) != c.want || cut != c.cut {
			t.Errorf("%q and %q: %q, %d cut", c.first, c.last, data, cut)
		}
		a := nixie.Attachment{Data: data, Truncated: cut}
		if dropBrokenLine(&a); strings.Contains(c.want, "…") && string(a.Data) != c.want {
			t.Errorf("%q lost more: %q", c.want, a.Data)
		}
	}
}
