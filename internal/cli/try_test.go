//go:build linux

package cli_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie/internal/proof/testservers"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// tried is the JSON of nixie dlq try.
type tried struct {
	WouldSucceed int `json:"would_succeed"`
	SameFailure  int `json:"same_failure"`
	NewFailure   int `json:"new_failure"`
	Skipped      int `json:"skipped"`
	Groups       []struct {
		Fingerprint  string `json:"fingerprint"`
		WouldSucceed int    `json:"would_succeed"`
		SameFailure  int    `json:"same_failure"`
	} `json:"groups"`
	Letters []struct{ Key, Outcome, Fingerprint, Text string } `json:"letters"`
}

func (d *workspace) try(code int, args ...string) (t tried) {
	d.t.Helper()
	r := d.nixie(code, append([]string{"dlq", "try", "-o", "json"}, args...)...)
	if err := json.Unmarshal([]byte(r.out), &t); err != nil {
		d.t.Fatalf("%v in %q %q", err, r.out, r.err)
	}
	return t
}

// A wrong fix spends nothing: the store is as before but for one entry of the audit. The right one
// is known to work before the redrive.
func TestTry(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) { tryFixes(newWorkspace(t)) })
	t.Run("postgres", func(t *testing.T) {
		d := newWorkspace(t)
		d.env = append(d.env, "NIXIE_STORE="+testservers.OwnPostgres(t).URL)
		tryFixes(d)
	})
}

func tryFixes(d *workspace) {
	const wrong = `grep -q many || exit 0; echo "amount is not a number" >&2; exit 65`
	d.write("bank", wrong)
	var items strings.Builder
	for i := range 10 {
		fmt.Fprintf(&items, `{"id":"o-%d","amount":"many %d"}`+"\n", i, i)
	}
	d.write("orders.jsonl", items.String())
	d.nixie(5, "run", "orders.jsonl", "--job", "orders", "-p", "1", "--breaker", "none", "--", "sh", "bank", "{id}")

	before, entries := d.everything(), d.auditEntries()
	got := d.try(5, "--filter", "queue:orders", "--", "sh", "bank", "{id}")
	if got.SameFailure != 10 || got.WouldSucceed+got.NewFailure+got.Skipped != 0 || len(got.Groups) != 1 ||
		got.Groups[0].SameFailure != 10 || got.Letters[0].Text != "amount is not a number" ||
		got.Letters[9].Fingerprint != got.Groups[0].Fingerprint {
		d.t.Errorf("the wrong fix: %+v", got)
	}
	d.same(before)
	if more := d.auditEntries()[len(entries):]; len(more) != 1 || !strings.HasPrefix(more[0], "try tester 10 copied for: sh bank '{id}'") {
		d.t.Errorf("the audit got %q", more)
	}
	d.t.Logf("a wrong fix: %d with the same failure, 0 letters spent, 1 entry of the audit", got.SameFailure)

	d.write("bank", `[ "$1" != o-3 ] || exit 0; echo "no such account" >&2; exit 70`)
	if got = d.try(5, "--all", "--max", "4", "--", "sh", "bank", "{id}"); got.NewFailure != 3 || got.WouldSucceed != 1 {
		d.t.Errorf("the other wrong fix: %+v", got)
	}
	d.write("bank", `echo "$NIXIE_TRY $NIXIE_ATTEMPT $NIXIE_REDRIVES $NIXIE_GENERATION"\
" $NIXIE_QUEUE $NIXIE_ITEM_ID $NIXIE_FIELD_ID $1" >> ledger; exit 0`)
	if got = d.try(0, "--filter", "queue:orders", "--", "sh", "bank", "{id}"); got.WouldSucceed != 10 {
		d.t.Errorf("the right fix: %+v", got)
	}
	ran := d.ledger("ledger")
	slices.Sort(ran)
	if len(ran) != 10 || ran[3] != "1 1 1 2 orders o-3 o-3 o-3" {
		d.t.Errorf("the command got %q", ran)
	}
	d.same(before)
	d.t.Logf("the right fix: %d of 10 would succeed", got.WouldSucceed)

	d.nixie(0, "dlq", "redrive", "--filter", "queue:orders", "--reason", "fixed", "--force", "--yes")
	d.nixie(0, "run", "orders.jsonl", "--job", "orders", "--", "sh", "bank", "{id}")
	if ran = d.ledger("ledger"); !strings.HasPrefix(ran[len(ran)-1], " 1 1 2 ") {
		d.t.Errorf("the redriven item had %q", ran[len(ran)-1])
	}
	d.verify()
}

// everything returns what the store holds, except the audit. Of SQLite these are all rows.
func (d *workspace) everything() string {
	var b strings.Builder
	for _, args := range [...][]string{
		{"dlq", "export", "--unmask", "--filter", "status:open,review,redriving,resolved,discarded,quarantined"},
		{"message", "list", "--all", "-o", "json"}, {"queue", "list", "-o", "json"}, {"operation", "list", "-o", "json"},
	} {
		for line := range strings.Lines(d.nixie(0, args...).out) {
			if !strings.Contains(line, "age_s") && !strings.Contains(line, "per_second") {
				b.WriteString(line)
			}
		}
	}
	if d.read("nixie.db") != "" {
		b.WriteString(d.rows())
	}
	return b.String()
}

// same expects that the store is as it was, except for the audit.
func (d *workspace) same(before string) {
	d.t.Helper()
	was, is := slices.Collect(strings.Lines(before)), slices.Collect(strings.Lines(d.everything()))
	for i := range max(len(was), len(is)) {
		if i >= len(was) || i >= len(is) || was[i] != is[i] {
			d.t.Errorf("line %d of the store was %.2000q and is %.2000q", i, was[min(i, len(was)-1)], is[min(i, len(is)-1)])
			return
		}
	}
}

// rows returns the rows of all tables but the audit, and the latest time that a writer saw.
func (d *workspace) rows() string {
	conn, err := sqlite.OpenConn(d.path("nixie.db"), sqlite.OpenReadWrite, sqlite.OpenWAL)
	if err != nil {
		d.t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // it was only read
	var tables []string
	list := func(query string, each func(*sqlite.Stmt)) {
		if err := sqlitex.ExecuteTransient(conn, query, &sqlitex.ExecOptions{ResultFunc: func(row *sqlite.Stmt) error {
			each(row)
			return nil
		}}); err != nil {
			d.t.Fatal(query, err)
		}
	}
	list("select name from sqlite_schema where type = 'table' and name not in ('audit', 'meta') order by name", func(row *sqlite.Stmt) {
		tables = append(tables, row.ColumnText(0))
	})
	var b strings.Builder
	for _, table := range tables {
		list("select * from "+table, func(row *sqlite.Stmt) {
			b.WriteString(table)
			for i := range row.ColumnCount() {
				fmt.Fprintf(&b, "|%x", row.ColumnText(i))
			}
			b.WriteByte('\n')
		})
	}
	return b.String()
}

// auditEntries returns the entries of the audit, oldest first.
func (d *workspace) auditEntries() (all []string) {
	for line := range strings.Lines(d.nixie(0, "audit", "list", "--all", "--oldest", "-o", "jsonl").out) {
		var e struct{ Event, Actor, Reason string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			d.t.Fatal(err)
		}
		all = append(all, e.Event+" "+e.Actor+" "+e.Reason)
	}
	return all
}

// What is tried, and what is not: policy of the queue, deadline, mask, a body that is elsewhere.
func TestTryAsWorkDoes(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	d.nixie(0, "enqueue", "q", "--body", `{"n":1}`, "--key", "slow")
	const hangs = `echo "token=ghp_0123456789abcdefghijABCDEFGHIJ012345" >&2; exec sleep 60`
	d.nixie(5, "work", "q", "--drain", "--max-attempts", "1", "--timeout", "200ms",
		"--", "sh", "-c", hangs)
	began := time.Now()
	got := d.try(5, "slow", "--timeout", "200ms", "--", "sh", "-c", hangs)
	if got.SameFailure != 1 || time.Since(began) > 30*time.Second || strings.Contains(fmt.Sprint(got), "ghp_") {
		t.Errorf("a deadline that passes again: %+v", got)
	}
	// Verdicts of the command, and an end of the message that has passed.
	verdict := func(text string) []string {
		return []string{"slow", "--", "sh", "-c", "echo '" + text + `' >"$NIXIE_VERDICT"`}
	}
	for text, want := range map[string]string{
		`{"outcome":"complete"}`: "would_succeed", `{"outcome":"release"}`: "new_failure", `{"outcome":"discard"}`: "new_failure",
		`{"outcome":"halt"}`: "new_failure", `{"outcome":"retry"}`: "new_failure",
	} {
		code := 5
		if want == "would_succeed" {
			code = 0
		}
		if got := d.try(code, verdict(text)...); len(got.Letters) != 1 || got.Letters[0].Outcome != want {
			t.Errorf("%s: %+v", text, got)
		}
	}
	var l map[string]any
	if err := json.Unmarshal([]byte(d.nixie(0, "dlq", "show", "slow", "-o", "json").out), &l); err != nil {
		t.Fatal(err)
	}
	m := l["message"].(map[string]any)
	l["id"], l["key"], m["id"], m["key"] = "", "far", "", "far"
	m["origin"] = map[string]any{"system": "kafka", "channel": "orders", "partition": 1, "offset": 2, "body_at": "orders/1/2"}
	for _, name := range []string{"body", "sha256", "size"} {
		delete(m, name)
	}
	far, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	d.write("far.jsonl", string(far))
	d.nixie(0, "dlq", "import", "far.jsonl")
	if got := d.try(5, "--all", "--", "true"); got.Skipped != 1 || got.WouldSucceed != 1 ||
		!slices.ContainsFunc(got.Letters, func(l struct{ Key, Outcome, Fingerprint, Text string }) bool {
			return l.Key == "far" && l.Outcome == "skipped" && strings.HasPrefix(l.Text, "its body is elsewhere, at orders/1/2 of kafka")
		}) {
		t.Errorf("a body that is elsewhere: %+v", got)
	}
	d.verify()
}
