package cli

import (
	"bytes"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/internal/command"
	"github.com/nixie-go/nixie/internal/lines"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/policy"
)

// Every flag with a duration, and every other text with one, takes days and weeks.
func TestDurationsTakeDays(t *testing.T) {
	flags := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Value.Type() != "duration" {
				return
			}
			flags++
			if err := f.Value.Set("1d12h"); err != nil || f.Value.String() != (36*time.Hour).String() {
				t.Errorf("%s --%s 1d12h is %s: %v", c.CommandPath(), f.Name, f.Value, err)
			}
			if f.Value.Set("0") == nil { // it is typed again by who pastes a command
				if again := flagWords(f); f.Value.Set(again[1]) != nil {
					t.Errorf("%s: %q is printed, and refused", c.CommandPath(), again)
				}
			}
			if err := f.Value.Set("5x"); err == nil || !strings.Contains(err.Error(), "90m or 1d12h") {
				t.Errorf("%s --%s 5x: %v", c.CommandPath(), f.Name, err)
			}
		})
		for _, below := range c.Commands() {
			walk(below)
		}
	}
	walk(newRoot(Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard, Env: func(string) string { return "" }, Now: always}))
	if flags < 20 {
		t.Errorf("%d flags with a duration", flags)
	}
	for name, read := range map[string]func() (time.Duration, error){
		"breaker": func() (time.Duration, error) {
			b, err := policy.ParseBreaker("5,3,2d,1")
			return b.OpenFor, err
		},
		"stage": func() (time.Duration, error) {
			s, err := broker.ParseStages("2d")
			return append(s, broker.Stage{})[0].Delay, err
		},
		"verdict": func() (time.Duration, error) {
			v, err := command.ParseVerdict([]byte(`{"outcome":"retry","retry_after":"2d"}`), time.Now())
			return v.RetryAfter, err
		},
		"line of enqueue": func() (time.Duration, error) {
			m, err := lines.ParseDraft([]byte(`{"delay":"2d"}`), nixie.Message{Queue: "q"})
			return m.Delay, err
		},
	} {
		if d, err := read(); err != nil || d != 48*time.Hour {
			t.Errorf("%s is %s: %v", name, d, err)
		}
	}
	for _, pair := range []string{"lease=2d", "retention=2d", "max-age=2d", "backoff=exponential base=1d cap=2d"} {
		if _, err := office.ParseSettings([]string{pair}); err != nil {
			t.Errorf("%s: %v", pair, err)
		}
	}
}

// What a program of Windows wrote begins with a byte order mark.
func TestByteOrderMarkIsSkipped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	var out bytes.Buffer
	code, said := enqueueLines(t.Context(), path, strings.NewReader("\ufeff{\"key\":\"a\",\"body\":\"x\"}\n{\"key\":\"b\"}\n"), &out)
	if code != 0 || !strings.Contains(said, "2 lines taken: 2 added") {
		t.Errorf("exit %d: %s", code, said)
	}
	if v, err := command.ParseVerdict([]byte("\ufeff{\"outcome\":\"release\"}"), time.Now()); err != nil || v.Outcome != nixie.Release {
		t.Errorf("verdict %+v: %v", v, err)
	}
}
