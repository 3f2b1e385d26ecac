package cli_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/internal/proof/testservers"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
)

// TestRegroupKilledAtAnyMoment kills a regroup with kill -9 between and in its steps. The same
// command goes on: in the end each letter has its group, and nothing else of it has changed.
func TestRegroupKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		d := newWorkspace(t)
		regroupKilled(d, "sqlite://"+d.path("nixie.db"))
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		d, url := newWorkspace(t), testservers.OwnPostgres(t).URL
		d.env = append(d.env, "NIXIE_STORE="+url)
		regroupKilled(d, url)
	})
}

func regroupKilled(d *workspace, url string) {
	const letters, kills = 6_000, 4 // a kill that comes late has nothing to end, and the rest holds all the same
	st, err := app.OpenStore(url, app.Options{Owner: "test"})
	if err != nil {
		d.t.Fatal(err)
	}
	defer st.Close() //nolint:errcheck // the test only reads by it at its end
	for part := range letters / olderBatch {
		addOlderLetters(d.t, st, part)
	}
	before := lettersByID(d.t, st)
	for kill := range kills {
		target := int64(letters-letters*(kill+1)/(kills+2)) + rand.Int64N(400)
		cmd := d.command("nixie", "dlq", "regroup", "--yes", "--reason", fmt.Sprint("try ", kill))
		if err := cmd.Start(); err != nil {
			d.t.Fatal(err)
		}
		if !within(time.Minute, func() bool { return outdated(d.t, st) <= target }) {
			d.t.Errorf("after a minute %d letters are left", outdated(d.t, st))
		}
		if err := cmd.Process.Kill(); err != nil {
			d.t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed, or has ended
	}
	left := outdated(d.t, st)
	r := d.nixie(0, "dlq", "regroup", "--yes")
	d.t.Logf("%d of %d letters were left after %d kills", left, letters, kills)
	if left > 0 && !strings.Contains(r.out, fmt.Sprintf("\n%d of %[1]d letters regrouped: ", left)) {
		d.t.Error(r.out)
	}
	after := lettersByID(d.t, st)
	for id, l := range before {
		l.Signature, l.Fingerprint = policy.GroupOf(&l)
		if got := after[id]; fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", l) {
			d.t.Fatalf("letter\n%+v\nwant\n%+v", got, l)
		}
	}
	entries, _, err := st.Audit(d.t.Context(), store.AuditFilter{Events: []store.Event{store.OnRegroup}}, store.Page{})
	if err != nil || len(entries) == 0 || len(entries) > 2*(kills+1) {
		d.t.Errorf("%d entries in the audit: %v", len(entries), err)
	}
	if r := d.nixie(0, "verify"); !strings.Contains(r.out, "0 violations") {
		d.t.Error(r.out)
	}
}

const olderBatch = 1_000

// addOlderLetters adds letters of two queues that an earlier build made, of ten causes in two
// groups.
func addOlderLetters(t *testing.T, st store.Store, part int) {
	t.Helper()
	letters := make([]nixie.Letter, olderBatch)
	for i := range letters {
		n, now := part*len(letters)+i, time.Now().UTC().Truncate(time.Millisecond)
		f := nixie.Failure{Generation: 1, Attempt: 1, FailedAt: now, Class: nixie.ClassUnknown, Reason: nixie.ReasonHandler,
			Text: "cannot read the " + strings.Repeat("big ", n%10) + "file", Decision: nixie.Bury}
		letters[i] = nixie.Letter{
			Message: nixie.Message{Queue: fmt.Sprint("q", n%2), Key: fmt.Sprint(n), Attempts: 1, Deliveries: 1, EnqueuedAt: now},
			Cause:   nixie.CauseExhausted, Status: nixie.StatusOpen, Class: f.Class, Reason: f.Reason, Signature: "older",
			Fingerprint: fmt.Sprintf("v2-%016x", n%3), Redrivable: true, DiedAt: now, FirstFailedAt: now, LastFailedAt: now,
			History: []nixie.Failure{f},
		}
	}
	_, errs := st.Adopt(t.Context(), letters, "ann", "test")
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func lettersByID(t *testing.T, st store.Store) map[nixie.ID]nixie.Letter {
	t.Helper()
	all := map[nixie.ID]nixie.Letter{}
	for p := (store.Page{Limit: 1_000, Whole: true}); ; {
		list, next, err := st.Letters(t.Context(), nixie.Filter{}, p)
		if err != nil {
			t.Fatal(err)
		}
		for i := range list {
			all[list[i].ID] = list[i]
		}
		if p.Cursor = next; next == "" {
			return all
		}
	}
}

// outdated counts the letters in groups of earlier builds.
func outdated(t *testing.T, st store.Store) (n int64) {
	t.Helper()
	groups, _, err := st.Count(t.Context(), nixie.Filter{}, store.Counting{By: []store.GroupBy{store.ByFingerprint}})
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range groups[0] {
		if policy.Outdated(g.Key) {
			n += g.Count
		}
	}
	return n
}
