package lifecycle

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// resolutions returns every resolution that an operator or a broker can ask for.
func resolutions() []store.Resolution {
	var all []store.Resolution
	for _, on := range []store.Event{
		store.OnRedrive, store.OnDiscard, store.OnHold, store.OnUnhold, store.OnRequalify, store.OnRestore, store.OnConfirm, store.OnNote,
		store.OnPurge,
	} {
		for _, force := range []bool{false, true} {
			for _, most := range []int{0, 1, 2} {
				for _, statuses := range [][]nixie.Status{nil, {nixie.StatusOpen, nixie.StatusRedriving}} {
					for _, skip := range []string{"", "left out"} {
						r := store.Resolution{Event: on, Force: force, MaxRedrives: most, Statuses: statuses, Skip: skip}
						if all = append(all, r); on == store.OnRedrive {
							r.ExpiresIn = time.Hour
							all = append(all, r)
						}
					}
				}
			}
		}
	}
	return all
}

// TestEveryLetter applies every resolution to every letter. An allowed one is a row of the table of
// moves or a note. A refused one has a reason that follows from the facts.
func TestEveryLetter(t *testing.T) {
	t.Parallel()
	asked, allowed := 0, map[store.Event]map[nixie.Status]bool{}
	for _, status := range nixie.Statuses() {
		for bits := range 1 << 7 {
			has := func(i int) bool { return bits>>i&1 == 1 }
			l := Facts{Status: status, Dead: has(0), Redrivable: has(1), NeedsReview: has(2), Revision: 3}
			if has(3) {
				l.Redrives = 1
			}
			if has(4) {
				l.Notes = nixie.MaxNotes
			}
			if has(5) {
				l.TakenKey = "k"
			}
			if has(6) {
				l.Expired, l.Cause = true, nixie.CauseExpired
			}
			for _, r := range resolutions() {
				asked++
				err := Refuse(l, &r)
				if wrong := unfair(&l, &r, err); wrong != "" {
					t.Fatalf("%+v of %+v: %v: %s", r, l, err, wrong)
				}
				if err == nil {
					if allowed[r.Event] == nil {
						allowed[r.Event] = map[nixie.Status]bool{}
					}
					allowed[r.Event][status] = true
				}
			}
		}
	}
	for event, want := range map[store.Event]string{
		store.OnRedrive: "open review", store.OnDiscard: "open review quarantined", store.OnHold: "open", store.OnUnhold: "review",
		store.OnRequalify: "quarantined",
		store.OnRestore:   "discarded", store.OnConfirm: "open redriving review",
		store.OnNote:  "open redriving resolved discarded review quarantined",
		store.OnPurge: "open resolved discarded",
	} {
		for _, status := range nixie.Statuses() {
			if got := allowed[event][status]; got != strings.Contains(" "+want+" ", " "+string(status)+" ") {
				t.Errorf("%s of a letter that is %s: allowed %v", event, status, got)
			}
		}
	}
	t.Logf("%d questions", asked)
}

// unfair says why an answer is wrong, "" if it is right.
func unfair(l *Facts, r *store.Resolution, err error) string {
	reasons := map[string]bool{
		"left out":        r.Skip != "",
		"is not possible": l.Status == nixie.StatusRedriving || r.Event != store.OnNote,
		"is not dead":     r.Event == store.OnRestore && !l.Dead,
		"notes":           r.Event == store.OnNote && l.Notes == nixie.MaxNotes,
		"is not for such": r.Event == store.OnPurge,
		"needs review":    r.Event == store.OnRedrive && !r.Force && l.NeedsReview,
		"has expired":     r.Event == store.OnRedrive && l.Expired && r.ExpiresIn == 0,
		"not redrivable":  r.Event == store.OnRedrive && !r.Force && !l.Redrivable && (l.Cause != nixie.CauseExpired || r.ExpiresIn == 0),
		"been redriven 1": r.Event == store.OnRedrive && r.MaxRedrives == 1 && l.Redrives == 1,
		"dedupe key":      l.TakenKey != "",
	}
	must := []string{"left out", "is not dead", "notes", "needs review", "has expired", "not redrivable", "been redriven 1", "dedupe key"}
	for _, reason := range must {
		if err == nil && reasons[reason] {
			return "it must be refused: " + reason
		}
	}
	for reason, holds := range reasons {
		if err != nil && strings.Contains(err.Error(), reason) {
			if !holds {
				return "that is not so"
			}
			return ""
		}
	}
	if err != nil {
		return "the reason is none of ours"
	}
	return ""
}

// TestChangedMeanwhile shows that a letter is refused if it was selected or read at another
// revision.
func TestChangedMeanwhile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		planned, read int64
		ok            bool
	}{{0, 0, true}, {3, 0, true}, {2, 0, false}, {0, 3, true}, {0, 2, false}, {3, 4, false}} {
		r := store.Resolution{Event: store.OnRedrive}
		if c.read != 0 {
			r.Edit = &store.Edit{Revision: c.read}
		}
		err := Refuse(Facts{Status: nixie.StatusOpen, Dead: true, Redrivable: true, Revision: 3, Planned: c.planned}, &r)
		if (err == nil) != c.ok || err != nil && nixie.CodeOf(err) != nixie.CodeConflict {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestListed shows that a listed letter gives the same facts as the rows of a store.
func TestListed(t *testing.T) {
	t.Parallel()
	l := nixie.Letter{ID: nixie.ID{1}, Status: nixie.StatusReview, Redrivable: true, NeedsReview: true, Notes: make([]nixie.Note, 2),
		Cause:   nixie.CauseExpired,
		Message: nixie.Message{State: nixie.Dead, Redrives: 4, ExpiresAt: time.Unix(9, 0)}}
	if Of(&l, time.Unix(9, -1)).Expired {
		t.Error("it has expired too early")
	}
	if got, want := Of(&l, time.Unix(9, 0)), (Facts{ID: l.ID, Status: l.Status, Dead: true, Redrivable: true, NeedsReview: true,
		Redrives: 4, Notes: 2, Cause: l.Cause, Expired: true}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestKeys shows which events need the dedupe key.
func TestKeys(t *testing.T) {
	t.Parallel()
	for scope, dead := range map[nixie.DedupeScope]bool{nixie.DedupeQueued: false, "": false, nixie.DedupeActive: false,
		nixie.DedupeUnresolved: true, nixie.DedupeEver: true} {
		queued := scope == nixie.DedupeQueued
		if KeepsDead(scope) != dead || NeedsKey(store.OnRestore, scope) != dead || NeedsKey(store.OnRedrive, scope) == queued ||
			FreesClaimed(scope) != queued || !TakesKey(scope, 0) || TakesKey(scope, 1) == queued ||
			NeedsKey(store.OnConfirm, scope) {
			t.Errorf("scope %q", scope)
		}
	}
}

// TestEnds shows for each end of a message the status of its letter and the audit entry.
func TestEnds(t *testing.T) {
	t.Parallel()
	burial := func(status nixie.Status) *nixie.Burial { return &nixie.Burial{Status: status, Rule: "rule"} }
	for _, c := range []struct {
		st     nixie.Settlement
		first  nixie.Status // of a new letter, "" if that is impossible
		next   nixie.Status // of a letter that is redriving
		reason string
		note   string
	}{
		{nixie.Settlement{Verb: nixie.Complete, Note: "n"}, "", nixie.StatusResolved, "", ""},
		{nixie.Settlement{Verb: nixie.Discard, Note: "n"}, "", nixie.StatusDiscarded, "n", "n"},
		{nixie.Settlement{Verb: nixie.Bury, Note: "n", Burial: burial(nixie.StatusOpen)}, nixie.StatusOpen, nixie.StatusOpen, "rule", "n"},
		{nixie.Settlement{Verb: nixie.Halt, Burial: burial("")}, nixie.StatusOpen, nixie.StatusOpen, "rule", ""},
		{nixie.Settlement{Verb: nixie.Bury, Burial: burial(nixie.StatusReview)}, nixie.StatusReview, nixie.StatusReview, "rule", ""},
		{nixie.Settlement{Verb: nixie.Hold, Burial: burial(nixie.StatusOpen)}, nixie.StatusReview, nixie.StatusReview, "rule", ""},
		{nixie.Settlement{Verb: nixie.Bury, Burial: burial(nixie.StatusQuarantined)}, nixie.StatusOpen, nixie.StatusQuarantined, "rule",
			""},
	} {
		for status, want := range map[nixie.Status]nixie.Status{"": c.first, nixie.StatusRedriving: c.next} {
			e := Settled(&c.st, status != "")
			if e.Actor != System || e.Reason != c.reason || e.Note != c.note {
				t.Errorf("%+v: %+v", c.st, e)
			}
			l := Letter{Status: status}
			err, got := l.Follow(e, 7), l.Status
			if err != nil {
				got = ""
			}
			if got != want || (err == nil) != (want != "") {
				t.Errorf("%+v of a letter that is %q: %q (%v), want %q", c.st, status, got, err, want)
			}
		}
	}
	if e := Settled(&nixie.Settlement{Verb: nixie.Retry, Note: "n"}, true); e != (End{}) {
		t.Errorf("a retry ends as %+v", e)
	}
	for _, verb := range []store.ChangeVerb{store.Cancel, store.Hold} {
		c := store.Change{Verb: verb, Actor: "ann", Reason: "why", Burial: burial(nixie.StatusReview)}
		e := Changed(&c, true)
		if want := map[store.ChangeVerb]store.Event{store.Cancel: store.OnGone,
			store.Hold: store.OnHold}[verb]; e != (End{Event: want, Actor: "ann", Reason: "why", Note: "ann: why"}) {
			t.Errorf("%s: %+v", verb, e)
		}
	}
}

// TestFollow shows that only a new or a redriving letter follows its message. Any other is damage.
func TestFollow(t *testing.T) {
	t.Parallel()
	for _, status := range nixie.Statuses() {
		for _, on := range store.Events() {
			l := Letter{ID: nixie.ID{1}, Status: status}
			err, next := l.Follow(End{Event: on}, 7), l.Status
			want, ok := store.NextStatus(status, on)
			if ok = ok && status == nixie.StatusRedriving; ok && (next != want || err != nil) ||
				!ok && nixie.CodeOf(err) != nixie.CodeInternal {
				t.Errorf("%s of %s: %q, %v", on, status, next, err)
			}
		}
	}
}

// TestCameBack shows which letters from elsewhere tell of later deaths of messages of the store.
func TestCameBack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status nixie.Status
		state  nixie.State
		later  int // generations after that of the store
		want   bool
	}{
		{nixie.StatusOpen, nixie.Dead, 1, true}, {nixie.StatusOpen, nixie.Dead, 0, false},
		{nixie.StatusResolved, nixie.Canceled, 0, true}, {nixie.StatusResolved, nixie.Canceled, -1, false},
		{nixie.StatusResolved, nixie.Succeeded, 0, false},
		{nixie.StatusResolved, nixie.Succeeded, 1, true}, {nixie.StatusRedriving, nixie.Queued, 1, false},
		{nixie.StatusRedriving, nixie.Leased, 1, false},
		{nixie.StatusOpen, nixie.Queued, 1, false}, {nixie.StatusOpen, nixie.Leased, 1, false}, {nixie.StatusOpen, "", 1, false},
		{nixie.StatusRedriving, nixie.Dead, 1, false},
		{nixie.StatusReview, nixie.Canceled, 0, false}, {nixie.StatusDiscarded, nixie.Dead, 1, true},
		{nixie.StatusQuarantined, nixie.Dead, 1, true},
	} {
		given := nixie.Letter{Status: nixie.StatusOpen, Message: nixie.Message{Generation: 5 + c.later}}
		if got := CameBack(c.status, c.state, 5, &given); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestEdited shows the audit reason of an edit.
func TestEdited(t *testing.T) {
	t.Parallel()
	body, headers := []byte("a"), []nixie.Header{{Name: "h", Value: "1"}}
	for _, c := range []struct {
		edit store.Edit
		want string
	}{
		{store.Edit{Body: body, Headers: headers}, ""},
		{store.Edit{Body: []byte("b"), Headers: headers}, "edited: body sha256 ca978112"},
		{store.Edit{Body: body}, "edited: headers sha256 "},
		{store.Edit{}, ", headers sha256 "},
	} {
		if got := Edited(nixie.HashBody(body), headers, &c.edit); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%+v: %q", c.edit, got)
		}
	}
}

// TestTold shows the steps that the history has for a failure, and the error for a lost lease.
func TestTold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ own, want []string }{{nil, []string{"known"}}, {[]string{}, nil}, {[]string{"own"}, []string{"own"}}} {
		if got := StepsOf(&nixie.Failure{Steps: c.own}, []string{"known"}); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%v: %v", c.own, got)
		}
	}
	if err := Lost(&nixie.Delivery{}); nixie.CodeOf(err) != nixie.CodeLeaseLost {
		t.Error(err)
	}
}
