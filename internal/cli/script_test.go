package cli

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/store"
)

// update rewrites the golden texts in the scripts: go test ./internal/cli -update
var update = flag.Bool("update", false, "rewrite the golden texts of the scripts")

// noon is the time of every script.
var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func TestR20_WhatGoesOutComesIn(t *testing.T)   { scripts(t, "R20_*") }
func TestR26_PurgeByEachAge(t *testing.T)       { scripts(t, "R26_*") }
func TestR27_DamageIsShown(t *testing.T)        { scripts(t, "R27_*") }
func TestR31_NothingIsTouched(t *testing.T)     { scripts(t, "R31_*") }
func TestR32_DryRunIsTheRun(t *testing.T)       { scripts(t, "R32_*") }
func TestR59_EveryVerbInEveryForm(t *testing.T) { scripts(t, "R59_*") }
func TestOtherStories(t *testing.T)             { scripts(t, "[a-z]*") }

// scripts runs the stories under testdata whose names match. Each is a list of
// commands with the exact text that they print. IDs made by the store are shown
// as a0000001-…, a0000002-… in the order in which a script first sees them.
func scripts(t *testing.T, names string) {
	scriptsOn(t, names, func(env *testscript.Env) (string, error) {
		return "sqlite://" + filepath.Join(env.WorkDir, "s.db"), nil
	})
}

// scriptsOn runs them on the stores of the URLs.
func scriptsOn(t *testing.T, names string, urlOf func(*testscript.Env) (string, error)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", names+".txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts %s: %v", names, err)
	}
	testscript.Run(t, testscript.Params{
		Files:               files,
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			ids := &idNames{shown: map[string]string{}, real: map[string]string{}}
			env.Values["ids"] = ids
			env.Setenv("NIXIE_ACTOR", "ann@desk")
			env.Setenv("NO_COLOR", "1")
			env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, "state")) // the clock, and so the owner, is that of others
			url, err := urlOf(env)
			ids.numbered = strings.HasPrefix(url, "postgres:")
			env.Setenv("NIXIE_STORE", url)
			return err
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"nixie": runNixie, "fixture": makeFixture, "streams": makeStreams, "damage": damageFixture, "unchanged": unchanged,
			"waiting": makeWaiting, "stopped": makeStopped, "exhausted": makeExhausted, "holder": holdOne,
			"secrets": makeSecrets, "sql": runSQL, "cluster": startCluster, "produce": produce, "records": records, "redis": runRedis,
			"rabbit": useRabbitMQ,
		},
	})
}

// runNixie runs a command line: nixie CODE ARG…, with the exit code it has to
// have.
func runNixie(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	ids := ts.Value("ids").(*idNames)
	var out, errs bytes.Buffer
	terminal := ts.Getenv("TERMINAL") != ""
	line := make([]string, 0, len(args))
	for _, a := range args[1:] {
		line = append(line, ids.toReal(a))
	}
	now := noon
	if later := ts.Getenv("LATER"); later != "" {
		by, err := time.ParseDuration(later)
		ts.Check(err)
		now = now.Add(by)
	}
	code := Main(line, Streams{
		In: strings.NewReader(ts.Getenv("ANSWER") + "\n"), Out: &out, Err: &errs, Env: ts.Getenv,
		OutTTY: terminal, ErrTTY: terminal, InTTY: terminal, Now: func() time.Time { return now },
	})
	for _, pair := range [...]struct {
		from *bytes.Buffer
		to   func(string)
	}{
		{&out, func(s string) { fmt.Fprint(ts.Stdout(), s) }}, {&errs, func(s string) { fmt.Fprint(ts.Stderr(), s) }},
	} {
		text := strings.ReplaceAll(ids.toShown(pair.from.String()), ts.Getenv("WORK"), "$WORK")
		if server := ts.Getenv("SERVER"); server != "" {
			text = strings.ReplaceAll(text, server, "$SERVER")
		}
		pair.to(text)
	}
	if code != want {
		ts.Fatalf("exit code %d, want %d\n%s%s", code, want, out.String(), errs.String())
	}
}

// idNames gives IDs that change with every run names that do not.
type idNames struct {
	shown, real map[string]string
	numbered    bool // IDs of the store end with their position, as those of the fixture seem to
}

var anyID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)

const fixedID = "01970000-"

// shortID is an ID at the beginning of a row.
var shortID = regexp.MustCompile(`(?m)^[0-9a-f]{8}  `)

// shownID is a short name that a script types.
var shownID = regexp.MustCompile(`^a[0-9]{7}$`)

func (n *idNames) toShown(s string) string {
	s = anyID.ReplaceAllStringFunc(s, func(id string) string {
		if strings.HasPrefix(id, fixedID) {
			return id
		}
		name := n.name(id[len(id)-shownDigits:]) + "-0000-7000-8000-000000000000"
		n.real[name] = id
		return name
	})
	for ending, name := range n.shown { // within a row, of an ID that was seen before
		s = strings.ReplaceAll(s, "  "+ending+"  ", "  "+name+"  ")
	}
	fixed := !n.numbered || strings.Contains(s, "MESSAGE ID") // letters of a store that numbers them have other IDs
	return shortID.ReplaceAllStringFunc(s, func(row string) string {
		if fixed && strings.HasPrefix(row, "0000") || shownID.MatchString(strings.TrimSpace(row)) {
			return row // of the fixture
		}
		return n.name(row[:shownDigits]) + "  "
	})
}

// name returns the name of the ID with an ending.
func (n *idNames) name(ending string) string {
	if n.shown[ending] == "" {
		name := fmt.Sprintf("a%07d", len(n.shown)+1)
		n.shown[ending], n.real[name] = name, ending
	}
	return n.shown[ending]
}

func (n *idNames) toReal(s string) string {
	if n.real[s] != "" {
		return n.real[s]
	}
	return anyID.ReplaceAllStringFunc(s, func(id string) string {
		if n.real[id] != "" {
			return n.real[id]
		}
		return id
	})
}

// dead is one dead letter of the fixture.
type dead struct {
	key, queue, kind string
	body             []byte
	failures         []nixie.Failure
	burial           nixie.Burial
}

func code(n int) *int { return &n }

// hostileText tries to set a terminal's title, to hide and to reorder text.
const hostileText = "\x1b]0;pwned\x07\x1b[2J=cmd|'/c calc'!A1\r\u202etxt.exe\u009b31m\n@second line"

func fixtureLetters() []dead {
	refused := func(db string) nixie.Failure {
		return nixie.Failure{Class: nixie.ClassTransient, Reason: nixie.ReasonDependency, Type: "*command.ExitError", Text: "connect to " +
			db + ": refused",
			Worker: "worker-1", Node: "node-a", ExitCode: code(69), Took: 1500 * time.Millisecond, Steps: []string{"fetched"},
			Context: []string{"deliver", "open connection"}, Attachments: []nixie.Attachment{{Name: "stderr",
				Data: []byte("trying\nconnect to " + db + ": refused\n"), Truncated: 12}}}
	}
	down := nixie.Burial{Cause: nixie.CauseExhausted, Status: nixie.StatusOpen,
		Signature: "dependency[exit 69]: connect to <host>: refused", Fingerprint: "v1-000000000000000a", Redrivable: true,
		Rule: "reason:dependency"}
	invalid := nixie.Failure{Class: nixie.ClassPermanent, Reason: nixie.ReasonValidation, Type: "*orders.Error", Text: "amount is negative",
		Step:   "check",
		Worker: "worker-1", Took: 2 * time.Millisecond, Stack: "goroutine 1 [running]:\nmain.check()\n" +
			strings.Repeat("\tmain.go:1\n", 12)}
	review := nixie.Burial{Cause: nixie.CausePermanent, Status: nixie.StatusOpen, Signature: "validation[step check]: amount is negative",
		Fingerprint: "v1-000000000000000b", NeedsReview: true, Rule: "reason:validation"}
	evil := nixie.Failure{Class: nixie.ClassUnknown, Reason: nixie.ReasonHandler, Type: "=HYPERLINK(1)", Text: hostileText,
		Worker: "\x1b[31mred", Context: []string{"a\rb"}}
	odd := nixie.Burial{Cause: nixie.CauseExhausted, Status: nixie.StatusQuarantined, Signature: "handler: \u202eevil",
		Fingerprint: "v1-000000000000000c", Redrivable: true, Rule: "reason:handler"}
	return []dead{
		{"order-1", "orders", "invoice", []byte(`{"id":"order-1","amount":10}`), []nixie.Failure{refused("db-1"), refused("db-1")}, down},
		{"order-2", "orders", "invoice", []byte(`{"id":"order-2","amount":20}`), []nixie.Failure{refused("db-2")}, down},
		{"order-3", "orders", "refund", []byte(`{"id":"order-3","amount":-1}`), []nixie.Failure{invalid}, review},
		{"=1+cmd|'/c calc'!A1\u202e", "+queue", "@SUM(A1)", []byte{0xff, 0x00, 0x1b, 'x'}, []nixie.Failure{evil}, odd},
		{"order-1", "billing", "invoice", []byte("日本語のテキスト"), []nixie.Failure{refused("db-9")}, down},
	}
}

// makeFixture makes the store that the scripts look at.
func makeFixture(ts *testscript.TestScript, _ bool, _ []string) {
	fillStore(ts.Getenv("NIXIE_STORE"), ts.Check)
}

// fillStore writes the fixture.
func fillStore(url string, check func(error)) {
	now := noon.Add(-3 * time.Hour)
	st, err := app.OpenStore(url, app.Options{Clock: func() time.Time { return now }, Owner: "worker-1"})
	check(err)
	number := 0
	enqueue := func(m nixie.Message) {
		number++
		m.ID, err = nixie.ParseID(fmt.Sprintf("01970000-0000-7000-8000-%012d", number))
		check(err)
		_, err = st.Enqueue(context.Background(), m)
		check(err)
	}
	settle := func(queue string, s nixie.Settlement) {
		ds, err := st.Claim(context.Background(), queue, nixie.Want{Max: 1})
		check(err)
		s.Delivery = ds[0]
		if f := s.Failure; f != nil {
			f.Generation, f.Attempt, f.Decision = ds[0].Generation, ds[0].Attempts, s.Verb
			f.StartedAt, f.FailedAt = now, now.Add(f.Took)
			if s.Verb == nixie.Retry {
				f.NextAt = f.FailedAt.Add(s.Delay)
			}
		}
		check(errors.Join(st.Settle(context.Background(), []nixie.Settlement{s})...))
		now = now.Add(2 * time.Second)
	}
	for _, l := range fixtureLetters() {
		enqueue(nixie.Message{Queue: l.queue, Key: l.key, Type: l.kind, Body: l.body,
			Headers: []nixie.Header{{Name: "request-id", Value: "r-" + l.queue}}})
		for i, f := range l.failures {
			if i < len(l.failures)-1 {
				settle(l.queue, nixie.Settlement{Verb: nixie.Retry, Delay: time.Second, Failure: &f})
				continue
			}
			settle(l.queue, nixie.Settlement{Verb: nixie.Bury, Failure: &f, Burial: &l.burial})
		}
		now = now.Add(30 * time.Minute)
	}
	enqueue(nixie.Message{Queue: "orders", Key: "order-4", Body: []byte("{}")})
	settle("orders", nixie.Settlement{Verb: nixie.Complete})
	enqueue(nixie.Message{Queue: "billing", Key: "bill-1", Body: []byte("{}"), NotBefore: noon.Add(90 * time.Minute)})
	enqueue(nixie.Message{Queue: "billing", Key: "bill-2", Body: []byte("{}")})
	check(store.Configure(context.Background(), st, "billing", nixie.QueueSettings{Paused: true, PausedNote: "bank is down"}, "bob@desk",
		"bank is down"))
	check(st.Close())
}

// unchanged checks that the store holds what it held at the first call.
func unchanged(ts *testscript.TestScript, _ bool, _ []string) {
	data, err := os.ReadFile(ts.MkAbs("s.db"))
	ts.Check(err)
	before := ts.MkAbs("before.db")
	if held, err := os.ReadFile(before); err == nil && !bytes.Equal(held, data) {
		ts.Fatalf("the store was changed")
	}
	ts.Check(os.WriteFile(before, data, 0o600))
}
