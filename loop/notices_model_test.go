package loop_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
)

// patient has what a model knows of a request.
type patient struct {
	id         nixie.ID
	generation int
	status     nixie.Status // of its letter; "" is none
	queued     bool
}

// A model of notices and letters: whichever door replays a letter, each death is replayed at most
// once, and told to a handler at most once, and only while its letter waits.
func TestModelOfNoticesAndLetters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHospital(t, memory.New(memory.Options{}))
		m := &wards{hospital: h, patients: map[string]*patient{}}
		t.Repeat(map[string]func(*rapid.T){
			"send":    m.send,
			"work":    m.works,
			"alert":   func(t *rapid.T) { m.consumes(t, false) },
			"replay":  func(t *rapid.T) { m.consumes(t, true) },
			"redrive": m.redrives, // by its ID
			"sweep":   m.sweeps,   // by a filter
			"discard": func(t *rapid.T) { m.moves(t, store.OnDiscard, nixie.StatusDiscarded) },
			"hold":    func(t *rapid.T) { m.moves(t, store.OnHold, nixie.StatusReview) },
			"purge":   func(t *rapid.T) { m.moves(t, store.OnPurge, "") },
			"":        m.check,
		})
	})
}

// wards is a hospital with what the model knows of it.
type wards struct {
	*hospital
	patients map[string]*patient
	notices  []notice
}

type notice struct {
	of         string
	generation int
}

func (m *wards) send(t *rapid.T) {
	name := fmt.Sprintf("r%02d", len(m.patients))
	m.patients[name] = &patient{id: must(m.requests.Send(ctx, request{Request: name}))(t), generation: 1, queued: true}
}

// works runs what is queued; some requests are cured before.
func (m *wards) works(t *rapid.T) {
	want := map[string]int{}
	for name, l := range m.patients {
		want[name] = m.runs[name]
		if !l.queued {
			continue
		}
		want[name]++
		m.cured[name] = rapid.Bool().Draw(t, "cured "+name)
		if l.queued = false; m.cured[name] {
			if l.status != "" {
				l.status = nixie.StatusResolved
			}
			continue
		}
		l.status = nixie.StatusOpen
		if l.generation > policy.DefaultMaxRedrives {
			l.status = nixie.StatusQuarantined
		}
		m.notices = append(m.notices, notice{name, l.generation})
	}
	m.work(t)
	if got, want := fmt.Sprint(m.runs), fmt.Sprint(want); got != want && len(m.patients) > 0 {
		t.Fatalf("runs are %s, want %s", got, want)
	}
}

// consumes runs a consumer. Its handlers hear of the notices whose letters wait, once each.
func (m *wards) consumes(t *rapid.T, replay bool) {
	var want []string
	for _, n := range m.notices {
		if l := m.patients[n.of]; n.generation == l.generation && (l.status == nixie.StatusOpen || l.status == nixie.StatusReview) {
			want = append(want, n.of)
		}
	}
	m.notices = nil
	slices.Sort(want)
	got := m.consume(t, func(l deadRequest) error {
		if !replay {
			return nil
		}
		return l.Replay(ctx, m.engine, "replayer", "the model wants it")
	})
	if !slices.Equal(got, want) {
		t.Fatalf("handlers heard of %v, want %v", got, want)
	}
	for _, name := range want {
		if replay {
			m.patients[name].redriven()
		}
	}
}

func (l *patient) redriven() {
	l.status, l.queued, l.generation = nixie.StatusRedriving, true, l.generation+1
}

// waiting draws a request whose letter waits; nil is none.
func (m *wards) waiting(t *rapid.T) *patient {
	var names []string
	for name, l := range m.patients {
		if l.status == nixie.StatusOpen || l.status == nixie.StatusReview {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		t.Skip("no letter waits")
	}
	slices.Sort(names)
	return m.patients[rapid.SampledFrom(names).Draw(t, "letter")]
}

func (m *wards) redrives(t *rapid.T) {
	l := m.waiting(t)
	m.resolve(t, l.id, store.OnRedrive)
	l.redriven()
}

func (m *wards) sweeps(t *rapid.T) {
	op := must(m.engine.Plan(ctx, store.Operation{Event: store.OnRedrive, Actor: "ann", Reason: "all of them"},
		nixie.Filter{Statuses: []nixie.Status{nixie.StatusOpen}}, 0))(t)
	must(m.engine.Run(ctx, op.ID))(t)
	for _, l := range m.patients {
		if l.status == nixie.StatusOpen {
			l.redriven()
		}
	}
}

func (m *wards) moves(t *rapid.T, on store.Event, to nixie.Status) {
	l := m.waiting(t)
	if on == store.OnHold && l.status == nixie.StatusReview {
		t.Skip("it is held already")
	}
	m.resolve(t, l.id, on, nixie.StatusOpen, nixie.StatusReview)
	l.status = to
}

// check compares the letters with the model.
func (m *wards) check(t *rapid.T) {
	for name, l := range m.patients {
		letter := m.letter(t, l.id)
		switch {
		case l.status == "" && letter != nil:
			t.Fatalf("%s has a letter that is %s", name, letter.Status)
		case l.status != "" && (letter == nil || letter.Status != l.status || letter.Message.Generation != l.generation):
			t.Fatalf("letter of %s is %+v, want %s in generation %d", name, letter, l.status, l.generation)
		}
	}
	if n := must(m.dead.ApproximateCount(ctx))(t); n != len(m.notices) {
		t.Fatalf("%d notices lie there, want %d", n, len(m.notices))
	}
}
