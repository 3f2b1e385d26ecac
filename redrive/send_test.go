package redrive_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/redrive"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
)

// post is a broker whose answer depends on the value of a record.
type post struct {
	answers map[string]error
	sent    []broker.Publication
}

func (p *post) Publish(_ context.Context, list []broker.Publication) func() []error {
	errs := make([]error, len(list))
	for i, r := range list {
		if errs[i] = p.answers[string(r.Value)]; errs[i] == nil {
			p.sent = append(p.sent, r)
		}
	}
	return func() []error { return errs }
}

func (p *post) Describe(context.Context, []string) ([]broker.Channel, error) { return nil, nil }

// adopted makes a store with letters of a broker, one for each value.
func adopted(t *testing.T, values ...string) *memory.Store {
	t.Helper()
	st := memory.New(memory.Options{})
	for i, value := range values {
		l := broker.Adopted("kafka", &broker.Record{
			Channel: "in.dlq", Offset: int64(i), ID: [16]byte{1, 15: byte(i)}, Key: []byte(value), Value: []byte(value),
			Timestamp: time.UnixMilli(1_700_000_000_000 + int64(i)),
		}, "")
		if value == "too often" {
			l.Message.Redrives, l.Message.Generation = 3, 4
		}
		l.NeedsReview = value == "review"
		if value == "stray" {
			l.Message.Origin.Channel = ""
		}
		if _, errs := st.Adopt(t.Context(), []nixie.Letter{l}, "ann", "r"); errs[0] != nil {
			t.Fatal(errs[0])
		}
	}
	return st
}

// sendAll redrives all letters to a broker.
func sendAll(t *testing.T, st *memory.Store, p *post, route redrive.Destination, id nixie.ID) (redrive.Result, error) {
	t.Helper()
	route.To = p
	send, err := route.Letters()
	if err != nil {
		t.Fatal(err)
	}
	e, err := redrive.New(redrive.Config{Store: st, Send: send, MaxRedrives: 3, Batch: 2})
	if err != nil {
		t.Fatal(err)
	}
	if id.IsZero() {
		op, err := e.Plan(t.Context(), store.Operation{Event: store.OnRedrive, Actor: "ann", Reason: "repaired"}, nixie.Filter{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		id = op.ID
	}
	return e.Run(t.Context(), id)
}

func statusesOf(t *testing.T, st *memory.Store) map[string]nixie.Status {
	t.Helper()
	letters, _, err := st.Letters(t.Context(), nixie.Filter{}, store.Page{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]nixie.Status{}
	for _, l := range letters {
		out[l.Message.Key] = l.Status
	}
	return out
}

// Letters that the broker took are resolved and in no queue. A letter that is refused stays as it
// was, and the others go.
func TestLettersGoToABroker(t *testing.T) {
	st := adopted(t, "a", "large", "b", "too often", "review", "stray", "c")
	p := &post{answers: map[string]error{"large": nixie.Errorf(nixie.CodeLimit, "too large")}}
	r, err := sendAll(t, st, p, redrive.Destination{}, nixie.ID{})
	if err != nil || r.Done != 3 || r.Skipped != 4 || r.Pending != 0 || len(r.Refused) != 4 {
		t.Fatalf("%+v, %v", r, err)
	}
	if got := fmt.Sprint(statusesOf(t,
		st)); got != "map[a:resolved b:resolved c:resolved large:open review:open stray:open too often:open]" {
		t.Error(got)
	}
	if len(p.sent) != 3 || p.sent[0].Channel != "in" || string(p.sent[0].Key) != "a" {
		t.Errorf("%+v", p.sent)
	}
	if ds, err := st.Claim(t.Context(), "in", nixie.Want{Max: 10, Lease: time.Minute}); err != nil || len(ds) > 0 {
		t.Errorf("%d are in the queue as well, %v", len(ds), err)
	}
	// Another operation sends none of those letters again.
	if r, err = sendAll(t, st, p, redrive.Destination{}, nixie.ID{}); err != nil || r.Done != 0 || len(p.sent) != 3 {
		t.Errorf("again: %+v, %d sent, %v", r, len(p.sent), err)
	}
}

// S16: a letter whose outcome is unknown stays pending and the run stops. The next run sends it
// under the same ID.
func TestS16_UnknownOutcomeIsSentAgain(t *testing.T) {
	st := adopted(t, "a", "b", "c", "d")
	p := &post{answers: map[string]error{"c": nixie.Errorf(nixie.CodeOutcomeUnknown, "no answer")}}
	var tried []string
	route := redrive.Destination{Transform: func(_ context.Context, r *broker.Returning) error {
		if out := r.Redriven(time.UnixMilli(1)); string(r.Value) == "c" {
			for _, h := range out.Headers {
				if h.Name == broker.HeaderRedriveID {
					tried = append(tried, string(h.Value))
				}
			}
		}
		return nil
	}}
	r, err := sendAll(t, st, p, route, nixie.ID{})
	if nixie.CodeOf(err) != nixie.CodeOutcomeUnknown || r.Pending != 1 || r.Done != 3 {
		t.Fatalf("%+v, %v", r.Operation, err)
	}
	p.answers = nil
	if r, err = sendAll(t, st, p, route, r.ID); err != nil || r.Done != 4 || len(p.sent) != 4 || len(tried) != 2 || tried[0] != tried[1] {
		t.Errorf("%+v, %d sent, %q, %v", r.Operation, len(p.sent), tried, err)
	}
}

// The changes of a destination are in the record that is sent. The letter stays as it is.
func TestChangedOnTheWay(t *testing.T) {
	st := adopted(t, "a", "bad")
	p := &post{}
	r, err := sendAll(t, st, p, redrive.Destination{
		Channel: "elsewhere", Set: []broker.RecordHeader{{Name: "by", Value: []byte("ann")}},
		Transform: func(_ context.Context, r *broker.Returning) error {
			if string(r.Value) == "bad" {
				return errors.New("cannot be repaired")
			}
			r.Value = []byte("repaired")
			return nil
		},
	}, nixie.ID{})
	if err != nil || r.Done != 1 || r.Skipped != 1 || len(p.sent) != 1 || p.sent[0].Channel != "elsewhere" ||
		string(p.sent[0].Value) != "repaired" || p.sent[0].Headers[0].Name != "by" {
		t.Fatalf("%+v, %+v, %v", r.Operation, p.sent, err)
	}
	letters, _, err := st.Letters(t.Context(), nixie.Filter{Keys: []string{"a"}}, store.Page{Whole: true})
	if err != nil || string(letters[0].Message.Body) != "a" {
		t.Errorf("%q, %v", letters[0].Message.Body, err)
	}
}

// When the context ends in the middle of a group, the letters that were not tried do not count as
// skipped.
func TestStoppedOnTheWay(t *testing.T) {
	st := adopted(t, "a", "b", "c", "d")
	ctx, stop := context.WithCancel(t.Context())
	route := redrive.Destination{To: &post{}, Transform: func(context.Context, *broker.Returning) error { stop(); return ctx.Err() }}
	send, err := route.Letters()
	if err != nil {
		t.Fatal(err)
	}
	e, err := redrive.New(redrive.Config{Store: st, Send: send})
	if err != nil {
		t.Fatal(err)
	}
	op, err := e.Plan(ctx, store.Operation{Event: store.OnRedrive, Actor: "ann", Reason: "r"}, nixie.Filter{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := e.Run(ctx, op.ID); !errors.Is(err, context.Canceled) || r.Pending != 4 || r.Skipped != 0 {
		t.Errorf("%+v, %v", r.Operation, err)
	}
}

// Invalid settings are refused before anything is read.
func TestRoutesAndMovesAreChecked(t *testing.T) {
	for what, r := range map[string]redrive.Destination{
		"no broker": {}, "braces": {To: &post{}, Channel: "{topic}"}, "cap": {To: &post{}, MaxRedrives: -2},
		"our header": {To: &post{}, Set: []broker.RecordHeader{{Name: "X-Redrive-Count"}}},
	} {
		if _, err := (redrive.Mover{Destination: r}).Run(t.Context()); nixie.CodeOf(err) != nixie.CodeInvalid {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, m := range map[string]redrive.Mover{"no reader": {}, "max": {Max: -1}, "batch": {Batch: redrive.MaxMove + 1},
		"rate": {Rate: -1}} {
		m.Destination.To = &post{}
		if _, err := m.Run(t.Context()); nixie.CodeOf(err) != nixie.CodeInvalid {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A letter of which the office has only a part is not sent as if it were whole.
func TestCutLettersStay(t *testing.T) {
	st := memory.New(memory.Options{})
	l := broker.Adopted("kafka", &broker.Record{
		Channel: "in.dlq", ID: [16]byte{1}, Value: []byte("v"), Timestamp: time.UnixMilli(1_700_000_000_000),
		Headers: []broker.RecordHeader{{Name: "h", Value: make([]byte, nixie.MaxHeaders)}},
	}, "")
	if _, errs := st.Adopt(t.Context(), []nixie.Letter{l}, "ann", "r"); errs[0] != nil {
		t.Fatal(errs[0])
	}
	p := &post{}
	if r, err := sendAll(t, st, p, redrive.Destination{}, nixie.ID{}); err != nil || r.Skipped != 1 || len(p.sent) != 0 ||
		len(r.Refused) != 1 {
		t.Errorf("%+v, %+v, %v", r.Operation, p.sent, err)
	}
}

// A letter whose body is elsewhere is not sent with a null one, also if a store allows it, nor to
// the quarantine or with a body that a transformation makes.
func TestPointersStay(t *testing.T) {
	pointer := &broker.Record{Channel: "dlq.orders", Server: "c", ID: [16]byte{1}, Timestamp: time.UnixMilli(1_700_000_000_000)}
	for name, value := range map[string]string{"topic": "orders", "partition": "1", "offset": "7"} {
		pointer.Headers = append(pointer.Headers, broker.RecordHeader{Name: "__dlq.errors." + name, Value: []byte(value)})
	}
	l := broker.Adopted("kafka", pointer, "")
	l.Message.Redrives = 9
	for name, route := range map[string]redrive.Destination{
		"back": {}, "to the quarantine": {Quarantine: "aside", MaxRedrives: 1},
		"transformed": {Transform: func(_ context.Context, r *broker.Returning) error { r.Value = []byte("new"); return nil }},
	} {
		p := &post{}
		route.To = p
		send, err := route.Letters()
		if err != nil {
			t.Fatal(err)
		}
		errs := send(t.Context(), []nixie.Letter{l})
		if !redrive.Refuses(errs[0]) || !strings.Contains(errs[0].Error(), "it lay at orders/1/7") || len(p.sent) > 0 {
			t.Errorf("%s: %v, sent %v", name, errs[0], p.sent)
		}
	}
}

// A record that was redriven too often goes to the quarantine with all its failures, and is done.
// The others go back to the channel where they came from.
func TestLettersOverTheCapArePutAside(t *testing.T) {
	st := adopted(t, "a", "too often", "stray")
	p := &post{}
	route := redrive.Destination{To: p, Quarantine: "{source}.quarantine", MaxRedrives: 3,
		Set: []broker.RecordHeader{{Name: "by", Value: []byte("ann")}}}
	send, err := route.Letters()
	if err != nil {
		t.Fatal(err)
	}
	e, err := redrive.New(redrive.Config{Store: st, Send: send, SetsAside: true, MaxRedrives: 3})
	if err != nil {
		t.Fatal(err)
	}
	op, err := e.Plan(t.Context(), store.Operation{Event: store.OnRedrive, Actor: "ann", Reason: "r"}, nixie.Filter{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Run(t.Context(), op.ID)
	if err != nil || r.Done != 2 || r.Quarantined != 1 || r.Skipped != 1 || len(p.sent) != 2 {
		t.Fatalf("%+v, %d put aside, %+v, %v", r.Operation, r.Quarantined, p.sent, err)
	}
	if got := fmt.Sprint(statusesOf(t, st)); got != "map[a:resolved stray:open too often:resolved]" {
		t.Error(got)
	}
	for _, sent := range p.sent {
		said := map[string]string{}
		for _, h := range sent.Headers {
			said[h.Name] = string(h.Value)
		}
		if string(sent.Value) != "too often" {
			if said["by"] != "ann" || sent.Channel != "in" {
				t.Errorf("%s: %v", sent.Channel, said)
			}
			continue
		}
		if sent.Channel != "in.quarantine" || said[broker.HeaderTopic] != "in" || said[broker.HeaderRedriveCount] != "3" ||
			said[broker.HeaderFailureReason] == "" ||
			said[broker.HeaderLetterID] == "" || said[broker.HeaderRedriveID] != "" || said[broker.HeaderOperation] != "" ||
			said["by"] != "" {
			t.Errorf("%s: %v", sent.Channel, said)
		}
	}
}

// A letter without an origin can go to a quarantine only if the name of that channel does not
// depend on the origin.
func TestStrayLettersPutAside(t *testing.T) {
	for quarantine, want := range map[string]int{"aside": 1, "{source}.aside": 0} {
		p := &post{}
		from := newShelf(1)
		from.rest[0].Channel = "nowhere"
		from.rest[0].Headers = []broker.RecordHeader{{Name: broker.HeaderRedriveCount, Value: []byte("9")}}
		got, err := redrive.Mover{From: from, Destination: redrive.Destination{To: p, Channel: "in",
			Quarantine: quarantine}}.Run(t.Context())
		if err != nil || int(got.Quarantined) != want || len(p.sent) != want || int(got.Skipped) != 1-want {
			t.Errorf("%s: %+v, %+v, %v", quarantine, got, p.sent, err)
		}
	}
}

// damaged is a store that cannot read one of its letters whole.
type damaged struct {
	*memory.Store
	body string
}

func (d damaged) Letters(ctx context.Context, f nixie.Filter, page store.Page) ([]nixie.Letter, string, error) {
	list, next, err := d.Store.Letters(ctx, f, page)
	for i := range list {
		if string(list[i].Message.Body) == d.body {
			list[i].Damage = []string{"its body does not fit its hash"}
		}
	}
	return list, next, err
}

// A letter that cannot be read whole is not sent to a broker, where no consumer could see the
// damage. The others go.
func TestDamagedLettersAreNotSent(t *testing.T) {
	st, p := adopted(t, "good", "torn", "fine"), &post{}
	send, err := redrive.Destination{To: p}.Letters()
	if err != nil {
		t.Fatal(err)
	}
	e, err := redrive.New(redrive.Config{Store: damaged{st, "torn"}, Send: send})
	if err != nil {
		t.Fatal(err)
	}
	op, err := e.Plan(t.Context(), store.Operation{Event: store.OnRedrive, Actor: "ann", Reason: "repaired", Force: true},
		nixie.Filter{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Run(t.Context(), op.ID)
	if err != nil || r.Done != 2 || r.Skipped != 1 || len(r.Refused) != 1 ||
		!strings.Contains(r.Refused[0].Why, "is damaged: its body does not fit its hash") {
		t.Errorf("%+v, %v", r, err)
	}
	for _, sent := range p.sent {
		if string(sent.Value) == "torn" {
			t.Error("what is damaged was sent")
		}
	}
	if got := statusesOf(t, st)["torn"]; len(p.sent) != 2 || got != nixie.StatusOpen {
		t.Errorf("%d are sent, the damaged one is %s", len(p.sent), got)
	}
}
