package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/worker"
)

// must fails the test at an error.
func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// story has every event: messages succeed, are tried again, die, are redriven and lost with their
// holder; a breaker opens, a lease ends too early, and a purge removes a message.
func story(t *testing.T, o *nixie.Observer) {
	ctx := t.Context()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	st := store.Observe(memory.New(memory.Options{Clock: clock}), o)
	config := worker.Config{Source: store.NewSource(st, "billing"), Clock: clock, Observer: o, Logger: slog.New(slog.DiscardHandler)}
	desk := must[*worker.Desk](t)(worker.NewDesk(config))
	outcomes := map[string]error{"busy": errors.New("no answer"), "bad": nixie.Permanent(errors.New("no such customer"))}
	var held *nixie.Delivery
	handle := func() {
		for {
			got := must[[]*nixie.Delivery](t)(desk.Receive(ctx, nixie.Want{Max: 10}))
			if len(got) == 0 {
				return
			}
			now = now.Add(20 * time.Millisecond)
			for _, d := range got {
				if d.Key == "crash" && d.Crashes == 0 {
					held = d
					continue
				}
				must[nixie.Settlement](t)(desk.Done(ctx, d, outcomes[d.Key], now.Add(-20*time.Millisecond)))
			}
		}
	}
	headers := []nixie.Header{{Name: "request-id", Value: "r-1"},
		{Name: "traceparent", Value: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}}
	for _, key := range []string{"ok", "busy", "bad", "crash"} {
		must[[]nixie.Receipt](t)(st.Enqueue(ctx, nixie.Message{Queue: "billing", Key: key, DedupeKey: key, Headers: headers}))
	}
	handle()
	desk.Extend(ctx, []*nixie.Delivery{held}, time.Minute)
	now = now.Add(time.Hour) // held is lost with its lease, and busy is due again
	delete(outcomes, "busy")
	handle()
	if _, err := desk.Done(ctx, held, nil, now); nixie.CodeOf(err) != nixie.CodeLeaseLost {
		t.Errorf("the holder of a lease that ended is told %v", err)
	}
	letters, _, err := st.Letters(ctx, nixie.Filter{}, store.Page{})
	if err != nil || len(letters) != 1 {
		t.Fatal(letters, err)
	}
	redrive := store.Resolution{Letter: letters[0].ID, Event: store.OnRedrive, Actor: "ann", Reason: "try", Force: true}
	for _, last := range []error{outcomes["bad"], nil} {
		outcomes["bad"] = last
		if errs := st.Resolve(ctx, []store.Resolution{redrive, redrive}); errs[0] != nil || errs[1] == nil {
			t.Fatal(errs)
		}
		handle()
	}
	must[[]nixie.Receipt](t)(st.Enqueue(ctx, nixie.Message{Queue: "idle"}))
	must[int](t)(st.Purge(ctx, "idle", nixie.Filter{}, 10, "ann", "old"))
	breaks(t, st, o)
}

// breaks opens the breaker of a worker.
func breaks(t *testing.T, st store.Store, o *nixie.Observer) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	must[[]nixie.Receipt](t)(st.Enqueue(ctx, nixie.Message{Queue: "flaky", Type: "mail"}))
	w := must[*worker.Worker](t)(worker.New(worker.Config{
		Source: store.NewSource(st, "flaky"), Logger: slog.New(slog.DiscardHandler),
		Breaker: policy.BreakerRules{Failures: 1, Successes: 1, HalfOpenMax: 1, OpenFor: time.Hour},
		Handler: nixie.HandlerFunc(func(context.Context, *nixie.Delivery) error { return errors.New("no answer") }),
		Observer: nixie.Tee(o, &nixie.Observer{Settled: func(string, []nixie.Settlement, []error) {
			stop() // the breaker opens before the failure is settled
		}}),
	}))
	if err := w.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

// update writes the golden lists again: go test ./telemetry -run TestStory -update
var update = flag.Bool("update", false, "write the golden files again")

// golden compares lines with those of a file in testdata.
func golden(t *testing.T, name string, got []string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(strings.Join(got, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := strings.Split(strings.TrimSpace(string(must[[]byte](t)(os.ReadFile(file)))), "\n")
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("%s has no %s", file, line)
		}
	}
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("missing, but in %s: %s", file, line)
		}
	}
}

// Every series of a story is in a file, with its value.
func TestStoryInNumbers(t *testing.T) {
	m, registry, _ := newMetrics(t)
	story(t, m.Observer())
	got := series(t, registry)
	got = slices.DeleteFunc(got, func(s string) bool { return strings.HasPrefix(s, "nixie_build_info") })
	for i, s := range got { // the clock of the worker with a breaker is a real one
		got[i] = regexp.MustCompile(`(handler_seconds.*"flaky".*sum) .*`).ReplaceAllString(s, "$1 …")
	}
	golden(t, "story.metrics", got)
}

// Every record of a story is in a file: its level and message, and what it says about whom.
func TestStoryInLogs(t *testing.T) {
	var out bytes.Buffer
	story(t, Logs(slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))))
	var got []string
	for line := range strings.Lines(out.String()) {
		r := record{}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprint(r["level"], " ", r["msg"])
		for _, name := range slices.Sorted(maps.Keys(r)) {
			switch name {
			case "level", "msg", "time":
			case "message_id", "letter_id", "age_seconds", "took", "fingerprint":
				text += " " + name
			default:
				text += fmt.Sprintf(" %s=%v", name, r[name])
			}
		}
		got = append(got, text)
	}
	golden(t, "story.logs", got)
}
