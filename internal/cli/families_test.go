//go:build linux

package cli_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/console"
	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/internal/proof/testservers"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
	"github.com/nixie-go/nixie/store/sqlite"
)

// What an answer about very many groups may take in make proof. The least of some rounds counts,
// as other programs may keep the processors busy.
const (
	familyRounds = 20
	mostAnalyze  = 300 * time.Millisecond
	mostOffice   = 100 * time.Millisecond
)

// TestFamiliesOfManyGroups analyzes a store with very many groups, whose labels differ in words of
// letters only, and opens the first page of its console. Both show families.
func TestFamiliesOfManyGroups(t *testing.T) {
	proof.Run(t, "families", func(t *testing.T, _ uint64) int {
		n := proof.Count("families")
		inBothStores(t, func(d *workspace, st store.Store) { d.manyGroups(st, n) })
		return n
	})
}

// inBothStores runs a test on a new file of SQLite, and on a new database of PostgreSQL. Commands
// use that store.
func inBothStores(t *testing.T, test func(*workspace, store.Store)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		d := newWorkspace(t)
		st, err := sqlite.Open(d.path("nixie.db"), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close() //nolint:errcheck // a test
		test(d, st)
	})
	t.Run("postgres", func(t *testing.T) {
		d := newWorkspace(t)
		server := testservers.OwnPostgres(t)
		d.env = append(d.env, "NIXIE_STORE="+server.URL)
		st, err := postgres.Open(t.Context(), server.URL, postgres.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close() //nolint:errcheck // a test
		test(d, st)
	})
}

// manyGroups asks a store with n groups of three errors.
func (d *workspace) manyGroups(st store.Store, n int) {
	now := time.Now()
	for at := 0; at < n; at += 1000 {
		letters := make([]nixie.Letter, min(1000, n-at))
		for i := range letters {
			letters[i] = strangerLetter(at+i, now)
		}
		_, errs := st.Adopt(d.t.Context(), letters, "tester", "")
		if err := errors.Join(errs...); err != nil {
			d.t.Fatal(err)
		}
	}
	clerk, err := office.New(office.Config{Store: st, Actor: "tester"})
	if err != nil {
		d.t.Fatal(err)
	}
	pages := httptest.NewServer(console.Handler(clerk, console.Options{}))
	defer pages.Close()
	var analysis string
	d.best("nixie dlq analyze", mostAnalyze, func() {
		got := d.finish(d.command("nixie", "dlq", "analyze"))
		if got.code != 0 {
			d.t.Fatalf("exit %d: %s", got.code, got.err)
		}
		analysis = got.out
	})
	var page strings.Builder
	d.best("the first page", mostOffice, func() {
		page.Reset()
		answer, err := http.Get(pages.URL + "/")
		if err == nil {
			err = answer.Write(&page)
		}
		if err != nil {
			d.t.Fatal(err)
		}
	})
	for _, want := range []string{"dependency: no route to server * connection refused", "causes, 3 families of them"} {
		if !strings.Contains(analysis, want) {
			d.t.Errorf("dlq analyze does not say %q:\n%s", want, analysis)
		}
	}
	if want := "dependency: no route to server * connection refused (server: "; !strings.Contains(page.String(), want) {
		d.t.Errorf("the first page does not say %q:\n%s", want, page.String())
	}
}

// best logs the least time of some rounds, and in make proof wants it to be short.
func (d *workspace) best(name string, most time.Duration, do func()) {
	d.t.Helper()
	rounds, proves := 2, proof.Current() >= proof.Long
	if proves {
		rounds = familyRounds
	}
	least := time.Hour
	for range rounds {
		began := time.Now()
		do()
		least = min(least, time.Since(began))
	}
	d.t.Logf("%-20s %s", name, least.Round(time.Millisecond/10))
	if proves && least > most {
		d.t.Errorf("%s takes %s, want at most %s", name, least, most)
	}
}

// strangerLetter is the letter of the i-th group.
func strangerLetter(i int, now time.Time) nixie.Letter {
	name := letterName(i)
	f := nixie.Failure{Class: nixie.ClassTransient, Reason: nixie.ReasonDependency, Generation: 1, Attempt: 1, Text: [...]string{
		"no route to server " + name + ": connection refused", "the account of " + name + " has no plan",
		"user " + name + " is not a member of team " + letterName(i%40)}[i%3]}
	died := now.Add(-time.Duration(i%3000) * time.Second)
	f.StartedAt, f.FailedAt = died, died
	l := nixie.Letter{
		Message: nixie.Message{Queue: fmt.Sprint("queue-", i%5), Type: "ship", Key: fmt.Sprint("order-", i), Attempts: 1, Deliveries: 1,
			Body: []byte("{}")},
		History: []nixie.Failure{f}, Cause: nixie.CauseExhausted, Class: f.Class, Reason: f.Reason, Status: nixie.StatusOpen,
		Redrivable: true, FirstFailedAt: died, LastFailedAt: died, DiedAt: died,
	}
	l.Signature, l.Fingerprint = policy.Signature(&f)
	return l
}

// letterName is the i-th name of letters only.
func letterName(i int) string {
	name := ""
	for range 6 {
		name = string(rune('a'+i%7)) + string("aeiou"[i/7%5]) + name
		i /= 35
		if i == 0 {
			break
		}
	}
	return name
}
