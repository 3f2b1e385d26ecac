package office_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/store/sqlite"
)

// fixture is an office over a store whose clock the test sets.
type fixture struct {
	*office.Office
	st  store.Store
	now time.Time
}

var monday = time.Date(2026, 5, 4, 6, 0, 0, 0, time.UTC)

// eachStore runs a test over the memory store and SQLite.
func eachStore(t *testing.T, test func(t *testing.T, d *fixture)) {
	for name, open := range map[string]func(*testing.T, func() time.Time) store.Store{
		"memory": func(_ *testing.T, clock func() time.Time) store.Store {
			return memory.New(memory.Options{Clock: clock})
		},
		"sqlite": func(t *testing.T, clock func() time.Time) store.Store {
			st, err := sqlite.Open(filepath.Join(t.TempDir(), "s.db"), sqlite.Options{Clock: clock, Reserve: -1})
			if err != nil {
				t.Fatal(err)
			}
			return st
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := &fixture{now: monday}
			clock := func() time.Time { return d.now }
			d.st = open(t, clock)
			t.Cleanup(func() {
				if err := d.st.Close(); err != nil {
					t.Error(err)
				}
			})
			var err error
			if d.Office, err = office.New(office.Config{Store: d.st, Actor: "ann", Clock: clock}); err != nil {
				t.Fatal(err)
			}
			test(t, d)
		})
	}
}

// die lets a message of the given key die for a reason.
func (d *fixture) die(t *testing.T, queue, key string, r nixie.Reason, change func(*nixie.Burial)) {
	t.Helper()
	if _, err := d.st.Enqueue(t.Context(), nixie.Message{Queue: queue, Key: key, Type: "type-" + key[:1], Body: []byte(key)}); err != nil {
		t.Fatal(err)
	}
	ds, err := d.st.Claim(t.Context(), queue, nixie.Want{Max: 1})
	if err != nil || len(ds) != 1 {
		t.Fatalf("claim: %d, %v", len(ds), err)
	}
	b := &nixie.Burial{Cause: nixie.CauseExhausted, Status: nixie.StatusOpen, Signature: string(r) + ": it", Fingerprint: "v1-" + string(r),
		Redrivable: true}
	if change != nil {
		change(b)
	}
	f := &nixie.Failure{Generation: 1, Attempt: 1, StartedAt: d.now, FailedAt: d.now, Class: nixie.ClassTransient, Reason: r, Text: "it"}
	if err := errors.Join(d.st.Settle(t.Context(),
		[]nixie.Settlement{{Delivery: ds[0], Verb: nixie.Bury, Failure: f, Burial: b}})...); err != nil {
		t.Fatal(err)
	}
}

// crowd makes letters of many kinds over several hours.
func (d *fixture) crowd(t *testing.T, n int) {
	t.Helper()
	reasons := []nixie.Reason{nixie.ReasonTimeout, nixie.ReasonHandler, nixie.ReasonDependency, nixie.ReasonValidation}
	for i := range n {
		d.die(t, fmt.Sprintf("q%d", i%3), fmt.Sprintf("%c-%d", 'a'+i%4, i), reasons[i*i%7%4], func(b *nixie.Burial) {
			b.NeedsReview, b.Redrivable = i%5 == 0, i%7 != 0
		})
		d.now = d.now.Add(time.Duration(i%5) * 11 * time.Minute)
	}
}

func (d *fixture) letters(t *testing.T, f nixie.Filter) []nixie.Letter {
	t.Helper()
	var list []nixie.Letter
	for l, err := range d.AllLetters(t.Context(), f, true) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, l)
	}
	return list
}

func TestR25_AnalyzeIsARecount(t *testing.T) {
	eachStore(t, func(t *testing.T, d *fixture) {
		d.crowd(t, 45)
		for _, text := range []string{"", "queue:q1", "reason:timeout,handler", "age:>2h", "redrivable:no", "queue:none"} {
			f, err := filter.Parse(text, d.now)
			if err != nil {
				t.Fatal(err)
			}
			f = office.Unresolved(f)
			a, err := d.Analyze(t.Context(), f, store.ScanRecent)
			if err != nil {
				t.Fatal(err)
			}
			causes, reasons, types, queues, hours := map[string]int64{}, map[string]int64{}, map[string]int64{}, map[string]int64{},
				map[string]int64{}
			all := d.letters(t, office.Unresolved(nixie.Filter{}))
			n := int64(0)
			for _, l := range all {
				if !filter.MatchLetter(&f, &l, d.now) {
					continue
				}
				n++
				causes[l.Fingerprint]++
				reasons[string(l.Reason)]++
				types[l.Message.Type]++
				queues[l.Message.Queue]++
				hours[l.DiedAt.UTC().Format("2006-01-02T15")]++
			}
			groups := map[string]int64{}
			for _, g := range a.Groups {
				groups[g.Fingerprint] = g.Count
				if len(g.Examples) != int(min(g.Count, 3)) {
					t.Errorf("%q: %d examples of %d", text, len(g.Examples), g.Count)
				}
			}
			for _, c := range []struct {
				what      string
				got, want map[string]int64
			}{
				{"groups", groups, causes}, {"reasons", asMap(a.ByReason), reasons}, {"types", asMap(a.ByType), types},
				{"queues", asMap(a.ByQueue), queues}, {"hours", asMap(a.ByHour), hours},
			} {
				if !maps.Equal(c.got, c.want) {
					t.Errorf("%q: %s are %v, a recount says %v", text, c.what, c.got, c.want)
				}
			}
			if a.Letters != n {
				t.Errorf("%q: %d letters, a recount says %d", text, a.Letters, n)
			}
			if !slices.IsSortedFunc(a.ByHour, func(a, b office.Count) int { return strings.Compare(a.Value, b.Value) }) {
				t.Errorf("hours are out of order: %v", a.ByHour)
			}
		}
	})
}

func asMap(list []office.Count) map[string]int64 {
	m := map[string]int64{}
	for _, c := range list {
		m[c.Value] += c.Count
	}
	return m
}

func TestStatsIsARecount(t *testing.T) {
	eachStore(t, func(t *testing.T, d *fixture) {
		d.crowd(t, 20)
		w := &office.OperationRequest{Event: store.OnRedrive, Max: 4, Reason: "r"}
		d.carryOut(t, w)
		d.carryOut(t, &office.OperationRequest{Event: store.OnDiscard, Max: 3, Reason: "r"})
		s, err := d.Stats(t.Context(), nixie.Filter{}, store.ScanRecent)
		if err != nil {
			t.Fatal(err)
		}
		var want office.Stats
		for _, l := range d.letters(t, nixie.Filter{}) {
			switch l.Status {
			case nixie.StatusRedriving:
				want.Redriving++
				continue
			case nixie.StatusDiscarded:
				want.Discarded++
				continue
			}
			want.Open++
			if l.Redrivable {
				want.Redrivable++
			}
			if l.NeedsReview {
				want.NeedsReview++
			}
			if want.OldestDiedAt.IsZero() || l.DiedAt.Before(want.OldestDiedAt.Time) {
				want.OldestDiedAt.Time = l.DiedAt
			}
		}
		if s.Open != want.Open || s.Redriving != 4 || s.Discarded != 3 || s.Redrivable != want.Redrivable ||
			s.NeedsReview != want.NeedsReview || !s.OldestDiedAt.Equal(want.OldestDiedAt.Time) {
			t.Errorf("%+v\nwant %+v", s, want)
		}
	})
}

func (d *fixture) carryOut(t *testing.T, w *office.OperationRequest) office.OperationResult {
	t.Helper()
	op, err := d.Begin(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	v, err := d.Run(t.Context(), op.Operation, w)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestR32_PreviewIsThePlan(t *testing.T) {
	for _, w := range []office.OperationRequest{
		{Event: store.OnRedrive},
		{Event: store.OnRedrive, Force: true},
		{Event: store.OnRedrive, Max: 7},
		{Event: store.OnRedrive, Max: 7, Force: true},
		{Event: store.OnRedrive, Filter: nixie.Filter{Queues: []string{"q1"}, Reasons: []nixie.Reason{nixie.ReasonTimeout}}},
		{Event: store.OnRedrive, Filter: nixie.Filter{Queues: []string{"none"}}},
		{Event: store.OnDiscard, Max: 5},
	} {
		t.Run(fmt.Sprintf("%s max %d force %v %s", w.Event, w.Max, w.Force, filter.Text(w.Filter)), func(t *testing.T) {
			eachStore(t, func(t *testing.T, d *fixture) {
				d.crowd(t, 24)
				w.Reason = "fixed"
				w.Batch = 5
				before := len(d.moved(t, w.Event))
				plan, err := d.Preview(t.Context(), &w)
				if err != nil {
					t.Fatal(err)
				}
				if len(d.moved(t, w.Event)) != before {
					t.Fatal("the preview moved letters")
				}
				op, err := d.Begin(t.Context(), &w)
				if err != nil {
					t.Fatal(err)
				}
				planned, err := store.FindOperation(t.Context(), d.st, store.OperationQuery{ID: op.Operation, Next: 100})
				if err != nil || !slices.Equal(planned.Next, plan.Letters) {
					t.Errorf("the plan is %v, %v\nthe preview said %v", planned.Next, err, plan.Letters)
				}
				v, err := d.Run(t.Context(), op.Operation, &w)
				if err != nil || v.Selected != plan.Selected || v.Done() != plan.Movable || v.Skipped != plan.Skipped {
					t.Errorf("%+v, %v\nthe preview said %+v", v, err, plan)
				}
				if w.Max > 0 && v.Done() != int64(w.Max) {
					t.Errorf("%d letters went, max is %d", v.Done(), w.Max)
				}
				if moved := d.moved(t, w.Event); int64(len(moved)) != v.Done() {
					t.Errorf("the audit knows %d, the operation says %d", len(moved), v.Done())
				}
			})
		})
	}
}

// moved lists the letters that have an event in the audit.
func (d *fixture) moved(t *testing.T, e store.Event) []nixie.ID {
	t.Helper()
	var ids []nixie.ID
	for _, q := range []string{"q0", "q1", "q2"} {
		entries, _, err := d.st.Audit(t.Context(), store.AuditFilter{Chain: q}, store.Page{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range entries {
			if a.Event == e {
				ids = append(ids, a.Subject)
			}
		}
	}
	return ids
}

func TestFind(t *testing.T) {
	eachStore(t, func(t *testing.T, d *fixture) {
		for i := range 12 {
			d.die(t, "many", "same", nixie.ReasonTimeout, nil)
			d.die(t, "one", fmt.Sprintf("only-%d", i), nixie.ReasonTimeout, nil)
		}
		l, err := d.Letter(t.Context(), "only-3")
		if err != nil || l.Message.Key != "only-3" || string(l.Message.Body) != "only-3" || len(l.History) != 1 {
			t.Fatalf("by key: %+v, %v", l, err)
		}
		for _, arg := range []string{l.ID.String(), l.Message.ID.String(), strings.ToUpper(l.ID.String())} {
			if same, err := d.Letter(t.Context(), arg); err != nil || same.ID != l.ID {
				t.Errorf("by %s: %v, %v", arg, same.ID, err)
			}
			if m, err := d.Message(t.Context(), arg); err != nil || m.ID != l.Message.ID {
				t.Errorf("message by %s: %v, %v", arg, m.ID, err)
			}
		}
		_, err = d.Letter(t.Context(), "same")
		var ambiguous *office.AmbiguousError
		if !errors.As(err, &ambiguous) || len(ambiguous.Candidates) != 10 || !ambiguous.More || nixie.CodeOf(err) != nixie.CodeConflict {
			t.Errorf("a key of twelve letters: %v", err)
		}
		for _, arg := range []string{"", "unknown", "01890a5d-ac96-774b-bcce-b302099a8057", "00000000-0000-0000-0000-000000000000"} {
			if _, err := d.Letter(t.Context(), arg); nixie.CodeOf(err) != nixie.CodeNotFound {
				t.Errorf("letter %q: %v", arg, err)
			}
			if _, err := d.Message(t.Context(), arg); nixie.CodeOf(err) != nixie.CodeNotFound {
				t.Errorf("message %q: %v", arg, err)
			}
		}
		ids, err := d.LetterIDs(t.Context(), []string{"only-1", "only-1", "only-2"})
		if err != nil || len(ids) != 2 {
			t.Errorf("%v, %v", ids, err)
		}
		if _, err := d.LetterIDs(t.Context(), []string{"unknown", "same"}); err == nil || !strings.Contains(err.Error(), "unknown") ||
			!strings.Contains(err.Error(), "same") {
			t.Errorf("both mistakes have to be named: %v", err)
		}
	})
}

// An ending that two IDs have names neither, and tells both; more digits name one.
func TestEndingsOfTwo(t *testing.T) {
	eachStore(t, func(t *testing.T, d *fixture) {
		var ms []nixie.Message
		for _, text := range []string{"01890a5d-ac96-774b-bcce-b302099abcde", "01890a5d-ac97-774b-bcce-b302099abcde"} {
			id, err := nixie.ParseID(text)
			if err != nil {
				t.Fatal(err)
			}
			ms = append(ms, nixie.Message{ID: id, Queue: "q"})
		}
		if _, err := d.st.Enqueue(t.Context(), ms...); err != nil {
			t.Fatal(err)
		}
		var ambiguous *office.AmbiguousError
		if _, err := d.Message(t.Context(), "099abcde"); !errors.As(err, &ambiguous) || len(ambiguous.Candidates) != 2 {
			t.Errorf("an ending of two: %v", err)
		}
		if m, err := d.Message(t.Context(), "ac97774bbcceb302099abcde"); err != nil || m.ID != ms[1].ID {
			t.Errorf("more digits: %v, %v", m.ID, err)
		}
		if _, err := d.Message(t.Context(), "abcde"); nixie.CodeOf(err) != nixie.CodeNotFound {
			t.Errorf("five digits: %v", err)
		}
	})
}

func TestBodiesAreLossless(t *testing.T) {
	for _, body := range []string{"", "text", "日本", "a\x00b", "\xff\xfe", "\x1b[31m\u202e\u2028", "line\r\nline"} {
		v := office.ViewMessage(&nixie.Message{Body: []byte(body)})
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var back struct {
			Body   *string `json:"body"`
			Base64 *string `json:"body_base64"`
		}
		if err := json.Unmarshal(data, &back); err != nil {
			t.Fatal(err)
		}
		if (back.Body == nil) == (back.Base64 == nil) {
			t.Fatalf("%q: body and body_base64 have to exclude each other: %s", body, data)
		}
		got := ""
		if back.Body != nil {
			got = *back.Body
		} else {
			raw, err := base64.StdEncoding.DecodeString(*back.Base64)
			if err != nil {
				t.Fatal(err)
			}
			got = string(raw)
		}
		if got != body {
			t.Errorf("%q came back as %q", body, got)
		}
	}
}

func TestNew(t *testing.T) {
	if _, err := office.New(office.Config{}); nixie.CodeOf(err) != nixie.CodeInvalid {
		t.Errorf("without a store: %v", err)
	}
	if _, err := office.New(office.Config{Store: memory.New(memory.Options{}), Actor: "a\nb"}); nixie.CodeOf(err) != nixie.CodeInvalid {
		t.Errorf("actor of two lines: %v", err)
	}
	o, err := office.New(office.Config{Store: memory.New(memory.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Begin(context.Background(), &office.OperationRequest{Event: store.OnRedrive, Reason: "r"}); nixie.CodeOf(
		err) != nixie.CodeInvalid {
		t.Errorf("a change without an actor: %v", err)
	}
	if _, err := o.Inspect(context.Background()); nixie.CodeOf(err) != nixie.CodeUnavailable {
		t.Errorf("doctor over a store that cannot tell: %v", err)
	}
}
