package cli

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
)

// B102: one view escaped what another did not. Here every view shows a store in which each foreign
// text is hostile.
func TestB102_NoViewActsOnATerminal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	dead, waiting := hostileStore(t, path)
	shown := 0
	for _, line := range []string{
		"dlq list", "dlq show " + dead, "dlq analyze", "dlq stats", "dlq export", "dlq redrive --all --dry-run --reason x",
		"dlq discard --all --dry-run --reason x",
		"queue list", "queue stats " + odd, "queue show " + odd, "message list", "message show " + dead, "message show " + waiting,
		"message log " + dead,
		"stream list " + odd, "stream show " + odd + " " + odd, "audit list", "audit export", "audit verify", "stats retries",
		"stats reasons", "stats backlog", "stats poison",
		"stats stalled", "check", "verify", "doctor", "prune --dry-run",
		"dlq show " + odd, "message log " + odd, "queue show no" + odd, "dlq list --filter text:" + odd + "(",
	} {
		for _, view := range []string{"", "wide", "json", "csv"} {
			args := strings.Split(line, " ")
			if view != "" {
				args = append(args, "-o", view)
			}
			var out, errs bytes.Buffer
			code := Main(append(args, "--color", "never", "--store", "sqlite://"+path), Streams{
				In: strings.NewReader(""), Out: &out, Err: &errs, Env: func(string) string { return "" },
				OutTTY: true, ErrTTY: true, InTTY: false, Now: func() time.Time { return noon.Add(time.Hour) },
			})
			if code == ExitOK && out.Len() > 0 {
				shown++
			}
			for name, text := range map[string]string{"output": out.String(), "errors": errs.String()} {
				if i := strings.IndexFunc(text, acts); i >= 0 {
					t.Errorf("nixie %q: the %s of it act on a terminal: %q", args, name, text[max(0, i-40):min(len(text), i+40)])
				}
			}
		}
	}
	if shown < 80 {
		t.Errorf("%d of the views showed something: too few to prove anything", shown)
	}
}

// odd is a name that is allowed and hides text.
const odd = "odd\u202e'name"

// acts reports whether a terminal does something at a character but show it.
func acts(r rune) bool {
	return (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) && r != '\n' && r != '\t'
}

// hostileStore makes a store whose texts are all hostile.
func hostileStore(t *testing.T, path string) (dead, waiting string) {
	t.Helper()
	st, err := sqlite.Open(path, sqlite.Options{Clock: func() time.Time { return noon }, Owner: hostileText, Reserve: -1})
	check := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	check(err)
	ctx := context.Background()
	check(store.Configure(ctx, st, odd, nixie.QueueSettings{Order: nixie.OrderStrict}, hostileText, hostileText))
	hostile := nixie.Message{
		Queue: odd, Type: odd, Key: odd, Stream: odd, DedupeKey: odd, Body: []byte(hostileText),
		Headers: []nixie.Header{{Name: hostileText, Value: hostileText}},
		Origin:  &nixie.Origin{System: hostileText, Channel: hostileText, MessageID: hostileText, Key: []byte(hostileText)},
	}
	enqueue := func() string {
		r, err := st.Enqueue(ctx, hostile)
		check(err)
		return r[0].ID.String()
	}
	claim := func() *nixie.Delivery {
		ds, err := st.Claim(ctx, odd, nixie.Want{Max: 1})
		check(err)
		if len(ds) != 1 {
			t.Fatalf("%d deliveries", len(ds))
		}
		ds[0].Steps = append(ds[0].Steps, odd)
		return ds[0]
	}
	failure := func(verb nixie.Verb) *nixie.Failure {
		return &nixie.Failure{
			Generation: 1, Attempt: 1, StartedAt: noon, FailedAt: noon, Decision: verb, Class: nixie.ClassUnknown,
			Reason: nixie.Reason(odd),
			Type:   hostileText, Text: hostileText, Context: []string{hostileText}, Stack: hostileText, Step: hostileText,
			Worker: hostileText, Node: hostileText,
			LogLocation: hostileText, Steps: []string{odd}, Attachments: []nixie.Attachment{{Name: hostileText, Data: []byte(hostileText)}},
		}
	}
	dead = enqueue()
	check(st.Settle(ctx, []nixie.Settlement{{Delivery: claim(), Verb: nixie.Bury, Failure: failure(nixie.Bury), Burial: &nixie.Burial{
		Cause: nixie.CauseExhausted, Status: nixie.StatusOpen, Signature: hostileText, Fingerprint: odd, Redrivable: true,
		Rule: hostileText,
	}}})...)
	letters, _, err := st.Letters(ctx, nixie.Filter{}, store.Page{})
	check(err)
	for _, event := range []store.Event{store.OnNote, store.OnHold} {
		check(st.Resolve(ctx, []store.Resolution{{Letter: letters[0].ID, Event: event, Actor: hostileText, Reason: hostileText}})...)
	}
	hostile.Stream, hostile.DedupeKey = "", ""
	enqueue()
	check(st.Settle(ctx, []nixie.Settlement{{Delivery: claim(), Verb: nixie.Discard, Failure: failure(nixie.Discard),
		Note: hostileText}})...)
	waiting = enqueue()
	check(st.Settle(ctx, []nixie.Settlement{{Delivery: claim(), Verb: nixie.Retry, Delay: time.Hour, Failure: failure(nixie.Retry)}})...)
	hostile.Stream = odd
	enqueue()
	check(store.Configure(ctx, st, odd, nixie.QueueSettings{Order: nixie.OrderStrict, Paused: true, PausedNote: hostileText, Closed: true,
		ClosedNote: hostileText}, hostileText, hostileText))
	check(st.Close())
	return dead, waiting
}
