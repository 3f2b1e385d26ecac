package nixie_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
	"github.com/nixie-go/nixie/lease"
)

func TestIDRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := nixie.ID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		if id.IsZero() {
			return
		}
		for _, text := range []string{id.String(), strings.ToUpper(id.String())} {
			if got, err := nixie.ParseID(text); got != id || err != nil {
				t.Fatalf("ParseID(%s) = %v, %v", text, got, err)
			}
		}
		data, err := json.Marshal(id)
		var got nixie.ID
		if err != nil || json.Unmarshal(data, &got) != nil || got != id {
			t.Fatalf("%s became %s and %v (%v)", id, data, got, err)
		}
	})
}

func TestParseIDErrors(t *testing.T) {
	for _, bad := range []string{"", "x", "01890a5dac96774bbcceb302099a8057", "01890a5d-ac96-774b-bcce-b302099a805g",
		"01890a5d_ac96-774b-bcce-b302099a8057", "01890a5d-ac96-774b-bcce-b302099a80577", strings.Repeat("é", 18)} {
		if id, err := nixie.ParseID(bad); nixie.CodeOf(err) != nixie.CodeInvalid || !id.IsZero() {
			t.Errorf("ParseID(%q) = %v, %v", bad, id, err)
		}
	}
}

func TestErrors(t *testing.T) {
	err := nixie.Errorf(nixie.CodeUnavailable, "reading: %w", io.ErrUnexpectedEOF)
	if err.Error() != "reading: unexpected EOF" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("Errorf lost the cause: %v", err)
	}
	wrapped := fmt.Errorf("outer: %w", err)
	joined := errors.Join(io.EOF, wrapped)
	nested := nixie.Errorf(nixie.CodeConflict, "again: %w", err)
	for _, c := range []struct {
		err  error
		want nixie.Code
	}{
		{nil, ""}, {io.EOF, nixie.CodeInternal}, {err, nixie.CodeUnavailable}, {wrapped, nixie.CodeUnavailable},
		{joined, nixie.CodeUnavailable}, {nested, nixie.CodeConflict}, {&nixie.DuplicateError{Key: "k"}, nixie.CodeConflict},
		{&filter.Error{}, nixie.CodeInvalid},
	} {
		if got := nixie.CodeOf(c.err); got != c.want {
			t.Errorf("CodeOf(%v) = %q, want %q", c.err, got, c.want)
		}
	}
}

func TestOutcomeOf(t *testing.T) {
	cause := errors.New("cause")
	evidence := nixie.Failure{Text: "inner"}
	for _, c := range []struct {
		name string
		err  error
		want nixie.Outcome
	}{
		{"plain", cause, nixie.Outcome{Err: cause}},
		{"permanent", nixie.Permanent(cause), nixie.Outcome{Class: nixie.ClassPermanent, Err: cause}},
		{"transient", nixie.Transient(cause), nixie.Outcome{Class: nixie.ClassTransient, Err: cause}},
		{"retry after", nixie.RetryAfter(cause, time.Minute), nixie.Outcome{Class: nixie.ClassTransient, After: time.Minute, Timed: true,
			Err: cause}},
		{"snooze", nixie.Snooze(cause, time.Minute), nixie.Outcome{Verb: nixie.Release, After: time.Minute, Timed: true, Err: cause}},
		{"snooze over a mark", nixie.Snooze(nixie.Permanent(cause), -1),
			nixie.Outcome{Verb: nixie.Release, Class: nixie.ClassPermanent, Timed: true, Err: cause}},
		{"retry after the past", nixie.RetryAfter(cause, -1), nixie.Outcome{Class: nixie.ClassTransient, Timed: true, Err: cause}},
		{"verdict", nixie.Verdict(nixie.Hold, cause), nixie.Outcome{Verb: nixie.Hold, Err: cause}},
		{"outer beats inner", nixie.Permanent(nixie.Transient(cause)), nixie.Outcome{Class: nixie.ClassPermanent, Err: cause}},
		{"inner fills in",
			nixie.Verdict(nixie.Bury, nixie.WithReason(nixie.WithEvidence(nixie.Transient(cause), evidence), nixie.ReasonAuth)),
			nixie.Outcome{Verb: nixie.Bury, Class: nixie.ClassTransient, Reason: nixie.ReasonAuth, Evidence: &evidence, Err: cause}},
		{"longest delay", nixie.RetryAfter(nixie.RetryAfter(cause, time.Hour), time.Minute),
			nixie.Outcome{Class: nixie.ClassTransient, After: time.Hour, Timed: true, Err: cause}},
	} {
		if got := nixie.OutcomeOf(c.err); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
		if c.err.Error() != "cause" || !errors.Is(c.err, cause) {
			t.Errorf("%s: the marks hide the error: %v", c.name, c.err)
		}
	}

	between := fmt.Errorf("loading: %w", nixie.WithReason(cause, nixie.ReasonDependency))
	got := nixie.OutcomeOf(nixie.Permanent(between))
	if got.Class != nixie.ClassPermanent || got.Reason != nixie.ReasonDependency || got.Err != between {
		t.Errorf("marks with an error between: %+v", got)
	}
	if got := nixie.OutcomeOf(nil); got != (nixie.Outcome{}) {
		t.Errorf("no error is %+v", got)
	}
	if got := nixie.Verdict(nixie.Release, nil); got == nil || got.Error() != "release" {
		t.Errorf("a verdict without an error is %v", got)
	}
	for _, err := range []error{
		nixie.Permanent(nil), nixie.Transient(nil), nixie.RetryAfter(nil, 1), nixie.WithReason(nil, "x"), nixie.WithEvidence(nil, evidence),
	} {
		if err != nil {
			t.Errorf("marking no error gives %v", err)
		}
	}
}

type invoice struct {
	Number int `json:"number"`
}

type queueOfOne struct{ got []nixie.Message }

func (q *queueOfOne) Enqueue(_ context.Context, messages ...nixie.Message) ([]nixie.Receipt, error) {
	q.got = append(q.got, messages...)
	if messages[0].Queue == "" {
		return nil, messages[0].Check()
	}
	return make([]nixie.Receipt, len(messages)), nil
}

func TestType(t *testing.T) {
	send := nixie.NewType[invoice]("invoice.send", nixie.Queue("billing"), nixie.Priority(1))
	var q queueOfOne
	_, err := send.Enqueue(t.Context(), &q, invoice{7}, nixie.Priority(2), nixie.Stream("s"), nixie.WithHeader("lang", "en"))
	if err != nil {
		t.Fatal(err)
	}
	m := q.got[0]
	if m.Type != send.Name() || m.Queue != "billing" || m.Priority != 2 || m.Stream != "s" || string(m.Body) != `{"number":7}` ||
		m.Header("lang") != "en" || m.Header("none") != "" {
		t.Errorf("enqueued %+v", m)
	}
	if _, err := nixie.NewType[invoice]("x").Enqueue(t.Context(), &q, invoice{}); nixie.CodeOf(err) != nixie.CodeInvalid {
		t.Errorf("without a queue: %v", err)
	}
	if _, err := nixie.NewType[chan int]("x").Enqueue(t.Context(), &q, nil); nixie.CodeOf(err) != nixie.CodeInvalid {
		t.Errorf("a body that cannot be encoded: %v", err)
	}
}

func TestRoutes(t *testing.T) {
	send := nixie.NewType[invoice]("invoice.send")
	failed := errors.New("failed")
	var seen int
	h := nixie.Routes(send.Handle(func(_ context.Context, job *nixie.Job[invoice]) error {
		seen = job.Body.Number
		if job.Key == "bad" {
			return failed
		}
		return nil
	}))
	deliver := func(m nixie.Message) error { return h.Handle(t.Context(), &nixie.Delivery{Message: m}) }

	if err := deliver(nixie.Message{Type: "invoice.send", Body: []byte(`{"number":7}`)}); err != nil || seen != 7 {
		t.Errorf("the handler got %d, %v", seen, err)
	}
	if err := deliver(nixie.Message{Type: "invoice.send", Key: "bad", Body: []byte(`{}`)}); err != failed {
		t.Errorf("the handler's error came back as %v", err)
	}
	o := nixie.OutcomeOf(deliver(nixie.Message{Type: "invoice.send", Body: []byte(`{`)}))
	if o.Class != nixie.ClassPermanent || o.Reason != nixie.ReasonSerialization {
		t.Errorf("a body that is no JSON: %+v", o)
	}
	o = nixie.OutcomeOf(deliver(nixie.Message{Type: "other"}))
	if o.Waiver() != nixie.WaiveUnknown || o.Reason != nixie.ReasonUnknownType || o.Within != nixie.DefaultUnknownTypes {
		t.Errorf("a type without a route: %+v", o)
	}
	h = nixie.Routes(send.Handle(nil), nixie.UnknownTypes(time.Hour))
	if o = nixie.OutcomeOf(deliver(nixie.Message{Type: "other"})); o.Within != time.Hour {
		t.Errorf("a type without a route for an hour: %+v", o)
	}
	func() {
		defer func() {
			if said := fmt.Sprint(recover()); !strings.Contains(said, "unknown types within -1s: give 0 for none") {
				t.Errorf("a time below 0: %s", said)
			}
		}()
		nixie.Routes(nixie.UnknownTypes(-time.Second))
	}()
	defer func() {
		if recover() == nil {
			t.Error("two routes for a type are accepted")
		}
	}()
	nixie.Routes(send.Handle(nil), send.Handle(nil))
}

func TestStep(t *testing.T) {
	d := nixie.Delivery{Message: nixie.Message{Steps: []string{"before"}}}
	lease.Ready(&d)
	runs := 0
	count := func() error { runs++; return nil }
	failed := errors.New("failed")
	for _, step := range []string{"before", "now", "now"} {
		if err := d.Step(step, count); err != nil {
			t.Fatal(err)
		}
	}
	if runs != 1 || !slices.Equal(lease.NewSteps(&d), []string{"now"}) || !d.Done("now") || d.Done("bad") {
		t.Errorf("%d runs, new steps %v", runs, lease.NewSteps(&d))
	}
	if err := d.Step("bad", func() error { return failed }); !errors.Is(err, failed) || err.Error() != "bad: failed" || d.Done("bad") {
		t.Errorf("a step that fails: %v, done: %v", err, d.Done("bad"))
	}
	if err := d.Step("a\nb", count); nixie.CodeOf(err) != nixie.CodeInvalid {
		t.Errorf("a step with a bad name: %v", err)
	}
	for i := len(d.Steps); i < nixie.MaxSteps; i++ {
		if err := d.Step(fmt.Sprint("step ", i), count); err != nil {
			t.Fatal(err)
		}
	}
	runs = 0
	if err := d.Step("one too many", count); nixie.CodeOf(err) != nixie.CodeLimit || runs != 0 {
		t.Errorf("a step over the limit: %v, %d runs", err, runs)
	}
	if err := d.Step("now", count); err != nil || runs != 0 {
		t.Errorf("a done step at the limit: %v, %d runs", err, runs)
	}
}

func TestClosedListsHaveNoDoubles(t *testing.T) {
	checkList(t, nixie.Reasons())
	checkList(t, nixie.Classes())
	checkList(t, nixie.Causes())
	checkList(t, nixie.States())
	checkList(t, nixie.Statuses())
}

func checkList[T ~string](t *testing.T, values []T) {
	t.Helper()
	seen := map[T]bool{}
	for _, v := range values {
		if v == "" || seen[v] || strings.ToLower(string(v)) != string(v) {
			t.Errorf("%T: %q is empty, there twice, or not in lower case", v, v)
		}
		seen[v] = true
	}
}
