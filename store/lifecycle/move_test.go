package lifecycle

import (
	"testing"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// standing is a letter before a move, with its message.
type standing struct {
	status                    nixie.Status
	ordered, inStream, blocks bool
	rank                      int64
}

// standings returns all letters that differ for a move.
func standings() []standing {
	var all []standing
	for _, status := range nixie.Statuses() {
		for bits := range 1 << 4 {
			has := func(i int) bool { return bits>>i&1 == 1 }
			all = append(all, standing{status, has(0), has(1), has(2), int64(bits >> 3 & 1 * 5)})
		}
	}
	return all
}

func (s standing) letter() Letter {
	return Letter{ID: nixie.ID{1}, Status: s.status, Revision: 3, Note: "old", Rule: "old", NeedsReview: true, Resolved: 1,
		InStream: s.inStream, Blocks: s.blocks, Rank: s.rank, Operation: nixie.ID{7}}
}

func (s standing) message() Message {
	m := Message{State: Dead, Generation: 2, Redrives: 1, Attempts: 3, Rank: 9}
	if s.status == nixie.StatusRedriving {
		m.State = Leased
	}
	return m
}

// TestEveryMove applies every resolution to every letter with its message. A move that the table
// forbids changes nothing; any other changes what the contract says of the event.
func TestEveryMove(t *testing.T) {
	t.Parallel()
	walked := 0
	for _, s := range standings() {
		for _, r := range []store.Resolution{
			{Event: store.OnRedrive}, {Event: store.OnDiscard}, {Event: store.OnHold}, {Event: store.OnUnhold},
			{Event: store.OnUnhold, Reviewed: true},
			{Event: store.OnRequalify}, {Event: store.OnRestore}, {Event: store.OnConfirm}, {Event: store.OnNote},
		} {
			walked++
			r.Actor, r.Reason, r.Operation = "ann", "why", nixie.ID{2}
			l, m, wasLetter, wasMessage := s.letter(), s.message(), s.letter(), s.message()
			appends, err := l.Resolve(&m, &r, s.ordered, 70)
			if r.Event == store.OnNote {
				if wasLetter.Revision++; err != nil || appends || l != wasLetter || !m.same(&wasMessage) {
					t.Errorf("a note on %+v: %+v, %v", s, l, err)
				}
				continue
			}
			next, ok := store.NextStatus(s.status, r.Event)
			if !ok {
				if nixie.CodeOf(err) != nixie.CodeInternal || l != wasLetter || !m.same(&wasMessage) {
					t.Errorf("%s of %+v is not possible: %+v, %v", r.Event, s, l, err)
				}
				continue
			}
			if s.status == nixie.StatusRedriving && r.Event != store.OnConfirm {
				continue // the message moves such a letter, not a resolution
			}
			operation := nixie.ID{7} // it stays that of the redrive that moved the letter last
			if r.Event == store.OnRedrive || r.Event == store.OnConfirm {
				operation = r.Operation
			}
			resolved := int64(0)
			if !next.Unresolved() {
				resolved = 70
			}
			if err != nil || l.Status != next || l.Revision != 4 || l.Resolved != resolved || l.Note != r.Note() ||
				l.Operation != operation {
				t.Errorf("%s of %+v: %+v, %v", r.Event, s, l, err)
			}
			if l.NeedsReview == r.Reviewed || l.Redrivable != r.Reviewed || (l.Rule == store.Reviewed) != r.Reviewed {
				t.Errorf("%s of %+v, reviewed %v: %+v", r.Event, s, r.Reviewed, l)
			}
			if wrong := misplaced(s, &r, &l, &m, appends); wrong != "" {
				t.Errorf("%s of %+v: %s: %+v, %+v", r.Event, s, wrong, l, m)
			}
		}
	}
	t.Logf("%d letters and resolutions", walked)
}

// misplaced says why a message or the position of its letter is wrong after a resolution, "" if
// both are right.
func misplaced(s standing, r *store.Resolution, l *Letter, m *Message, appends bool) string {
	was := s.message()
	if r.Event != store.OnRedrive && appends {
		return "it needs no rank"
	}
	switch r.Event {
	case store.OnRedrive:
		if m.Ordered != s.ordered || m.Public() != nixie.Queued || (m.State == Behind) != s.ordered || m.Generation != 3 ||
			m.Redrives != 2 || m.Attempts != 0 || m.Due != 70 {
			return "its message does not wait in its next generation"
		}
		if appends != (s.ordered && !s.blocks) || m.Gap != appends || s.ordered && m.Rank != s.rank {
			return "it has a wrong position in its stream"
		}
	case store.OnConfirm:
		generation := was.Generation
		if s.status != nixie.StatusRedriving {
			generation++
		}
		if m.State != Canceled || m.Generation != generation || m.Ended != 70 {
			return "its message has not ended in the generation that a broker took"
		}
	case store.OnRestore:
		if l.InStream != (s.ordered && s.rank > 0) || l.Blocks != s.blocks || !m.same(&was) {
			return "it is not where it was"
		}
		return ""
	case store.OnDiscard:
		if !m.same(&was) {
			return "its message changed"
		}
	default:
		if l.InStream != s.inStream || l.Blocks != s.blocks || !m.same(&was) {
			return "more than its status changed"
		}
		return ""
	}
	if l.InStream || l.Blocks {
		return "it is in its stream still"
	}
	return ""
}

// same compares messages without steps.
func (m *Message) same(o *Message) bool {
	return m.State == o.State && m.Generation == o.Generation && m.Redrives == o.Redrives && m.Attempts == o.Attempts && m.Rank == o.Rank &&
		m.Due == o.Due && m.Ended == o.Ended && m.Ordered == o.Ordered
}

// TestEveryDeath lets messages die, in streams or not, with new and with redriving letters.
func TestEveryDeath(t *testing.T) {
	t.Parallel()
	b := &nixie.Burial{Cause: nixie.CauseExhausted, Signature: "s", Fingerprint: "f", Redrivable: true, Rule: "rule",
		Status: nixie.StatusOpen}
	early, late := &Failure{At: 10, Class: "a", Reason: "b", Text: "c"}, &Failure{At: 20, Class: "d", Reason: "e", Text: "f"}
	st := nixie.Settlement{Verb: nixie.Bury, Note: "n", Burial: b}
	for _, status := range append(nixie.Statuses(), "") {
		for bits := range 1 << 4 {
			has := func(i int) bool { return bits>>i&1 == 1 }
			ordered, frees, failed, failedBefore := has(0), has(1), has(2), has(3)
			set := nixie.QueueSettings{Order: nixie.OrderStrict}
			m := Message{State: Dead, Ordered: ordered, Rank: 8}
			l := Letter{Status: status, Revision: 3, Class: "old", Resolved: 5}
			e := Settled(&st, status != "")
			if e.Frees = frees; failedBefore {
				l.FirstFailed = 4
			}
			var first, last *Failure
			if failed {
				first, last = early, late
			}
			was := l
			err := l.Die(&m, e, b, &set, first, last, 70)
			if status != "" && status != nixie.StatusRedriving {
				if nixie.CodeOf(err) != nixie.CodeInternal || l != was {
					t.Errorf("the message of a letter that is %s died: %+v, %v", status, l, err)
				}
				continue
			}
			want := Letter{
				Status: nixie.StatusOpen, Revision: 4, Cause: b.Cause, Class: "old", Signature: "s", Fingerprint: "f", Redrivable: true,
				Rule: "rule", Note: "n",
				Died: 70, InStream: ordered, Blocks: ordered && !frees, Rank: 8, FirstFailed: was.FirstFailed,
			}
			if failed {
				want.Class, want.Reason, want.Text, want.LastFailed = "d", "e", "f", 20
				if !failedBefore {
					want.FirstFailed = 10
				}
			}
			if err != nil || l != want {
				t.Errorf("%+v died to %+v, want %+v (%v)", was, l, want, err)
			}
		}
	}
}

// TestLettersFromElsewhere moves letters whose messages died again with a foreign broker.
func TestLettersFromElsewhere(t *testing.T) {
	t.Parallel()
	for _, from := range nixie.Statuses() {
		for _, to := range nixie.Statuses() {
			way := store.Comeback(from, to)
			if way == nil {
				continue
			}
			l := Letter{Status: from, Revision: 3, InStream: true, Blocks: true, Rank: 4, Resolved: 9, FirstFailed: 2}
			given := nixie.Letter{
				Status: to, Cause: nixie.CauseExhausted, Class: "c", Reason: "r", Signature: "s", Fingerprint: "f", NeedsReview: true,
				Rule: "rule", Note: "n", Operation: nixie.ID{7},
				LastFailedAt: Moment(60), DiedAt: Moment(70),
			}
			want := Letter{
				Status: to, Revision: 3 + int64(len(way)), Cause: given.Cause, Class: "c", Reason: "r", Signature: "s", Fingerprint: "f",
				NeedsReview: true, Rule: "rule", Note: "n",
				Operation: nixie.ID{7}, LastFailed: 60, Died: 70, FirstFailed: 2,
			}
			if err := l.DieElsewhere(&given, 80); err != nil || l != want {
				t.Errorf("from %s to %s: %+v, want %+v (%v)", from, to, l, want, err)
			}
		}
	}
}

// TestDamageChangesNothing resolves letters whose messages contradict their status.
func TestDamageChangesNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status nixie.Status
		on     store.Event
		state  int
	}{
		{nixie.StatusOpen, store.OnRedrive, Leased}, {nixie.StatusReview, store.OnRedrive, Succeeded},
		{nixie.StatusOpen, store.OnConfirm, Queued}, {nixie.StatusRedriving, store.OnConfirm, Dead},
	} {
		l, m := Letter{Status: c.status, InStream: true, Blocks: true, Rank: 3, Revision: 4}, Message{State: c.state, Generation: 2}
		wasLetter, wasMessage := l, m
		r := store.Resolution{Event: c.on, Operation: nixie.ID{1}}
		if appends, err := l.Resolve(&m, &r, true, 70); err == nil || appends || l != wasLetter || !m.same(&wasMessage) {
			t.Errorf("%s of a letter that is %s, with its message in state %d: %+v, %+v, %v", c.on, c.status, c.state, l, m, err)
		}
	}
}
