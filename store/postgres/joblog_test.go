package postgres_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
)

// TestSeedSQLHasEachGeneration lets a job die twice, be redriven and succeed. The log of jobs keeps
// each death until the message is pruned, with the last failure of its own generation, and the
// function that takes IDs tells the same.
func TestSeedSQLHasEachGeneration(t *testing.T) {
	o := newOutbox(t)
	o.put("m1")
	var id nixie.ID
	fail := func(verb nixie.Verb, text string) {
		t.Helper()
		o.clock.Advance(time.Minute)
		d := o.claim("m1")
		id = d.ID
		st := nixie.Settlement{Delivery: d, Verb: verb, Failure: &nixie.Failure{
			Generation: d.Generation, Attempt: d.Attempts, FailedAt: o.clock.Now(), Class: nixie.ClassPermanent,
			Reason: nixie.ReasonHandler, Text: text, Type: "app." + text, Stack: "at " + text,
		}}
		if verb == nixie.Bury {
			st.Burial = &nixie.Burial{Cause: nixie.CausePermanent, Status: nixie.StatusOpen}
			second := *st.Failure
			second.Text += " for good"
			st.Second = &second
		}
		o.settle(st)
	}
	rows := func(want ...string) {
		t.Helper()
		for _, from := range [...]string{"nixie_job_log where job_id = '" + id.String() + "'", "nixie_job_log('" + id.String() + "')"} {
			rows, err := o.pool.Query(t.Context(), `select concat_ws(' ', status, exception_type, exception_message, traceback) from `+
				o.schema+"."+from+" order by created desc")
			o.must(err)
			got, err := pgx.CollectRows(rows, pgx.RowTo[string])
			o.must(err)
			if !slices.Equal(got, want) {
				t.Errorf("%s has\n%q, want\n%q", from, got, want)
			}
		}
	}
	const first, second = "exception app.no no for good at no", "exception app.again again for good at again"
	fail(nixie.Retry, "slow")
	rows()
	fail(nixie.Bury, "no")
	rows(first)
	o.resolve(o.letter("m1"), store.OnRedrive)
	rows(first)
	fail(nixie.Retry, "slow")
	rows(first)
	fail(nixie.Bury, "again")
	rows(second, first)
	o.resolve(o.letter("m1"), store.OnRedrive)
	o.clock.Advance(time.Minute)
	o.settle(nixie.Settlement{Delivery: o.claim("m1"), Verb: nixie.Complete})
	rows("successful  ", second, first)
	_, err := o.Adjust(t.Context(), "outbox", "ann", "", func(q *nixie.QueueSettings) error { q.LetterRetention = time.Hour; return nil })
	o.must(err)
	o.clock.Advance(365 * 24 * time.Hour)
	_, err = o.Prune(t.Context(), store.Pruning{})
	o.must(err)
	rows("deleted") // as long as the audit has the purge
}

// TestSeedSQLReadsTheNewestOnly asks the log of jobs for its newest rows, with only the name of the
// table replaced, of many that succeeded in ranges and alone, died once and twice, and were
// discarded. What is read does not grow with them.
func TestSeedSQLReadsTheNewestOnly(t *testing.T) {
	schema := freshSchema(t)
	s, err := postgres.Open(t.Context(), server.URL, postgres.Options{Schema: schema, Owner: "owner-0"})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	many, long := 10_000, proof.Current() >= proof.Long
	if long {
		many = 250_000
	}
	endedOnes(t, schema, many)
	conn, err := pgx.Connect(t.Context(), server.URL)
	must(t, err)
	defer func() { must(t, conn.Close(t.Context())) }()
	for _, query := range []string{
		`SELECT job_id, entrypoint, exception_type, exception_message, traceback FROM pgqueuer_log WHERE status = 'exception'
			ORDER BY created DESC LIMIT 20`,
		"select * from pgqueuer_log order by created desc limit 20",
		"select * from pgqueuer_log where entrypoint = 'jobs' order by created desc limit 20",
		"select * from pgqueuer_log where status = 'successful' order by created desc limit 20",
		"select * from pgqueuer_log where status = 'deleted' order by created desc limit 20",
		"select * from pgqueuer_log where status = 'canceled' order by created desc limit 20",
	} {
		query = strings.ReplaceAll(query, "pgqueuer_log", schema+".nixie_job_log")
		a := explained(t, conn, query)
		const pages = 1000
		if a.rows != 20 || a.pages > pages || a.cost > compiled {
			t.Errorf("%+v, 20 rows are wanted from at most %d pages, for a cost of at most %d: %s", a, pages, compiled, query)
		}
		best := time.Hour
		for range 5 {
			begun := time.Now()
			_, err := conn.Exec(t.Context(), query)
			must(t, err)
			best = min(best, time.Since(begun))
		}
		t.Logf("%d ended: %v, %+v: %s", 4*many, best, a, query)
		if long && best > 20*time.Millisecond {
			t.Errorf("%v for the newest of %d, want at most 20 ms: %s", best, 4*many, query)
		}
	}
}

// endedOnes writes, for each of n, a message that succeeded in a range of 100, one that succeeded
// after a retry, one that died twice and one that was discarded or canceled.
func endedOnes(t *testing.T, schema string, n int) {
	t.Helper()
	for _, statement := range strings.Split(endedSQL, ";") {
		execute(t, strings.NewReplacer("S.", schema+".", "MANY", fmt.Sprint(n)).Replace(statement))
	}
	execute(t, "vacuum analyze")
}

const endedSQL = `
insert into S.queue (name, age, lease) values ('ranges', 1, 1), ('jobs', 1, 1);
insert into S.message (pos, id, queue, type, body, hash, enqueued, by_range)
	select 5 * i + k + case k when 0 then -4 * i else 1000000000 end, gen_random_uuid(), case k when 0 then 1 else 2 end,
		'', '', '', 1, k = 0
	from generate_series(1, MANY) i, generate_series(0, 3) k;
insert into S.success_range (queue, after_tx, after, last_tx, last, members, ended, received)
	select 1, tx, i * 100 - 100, tx, i * 100, 100, i * 100000000000 + 1, 1
	from (select tx from S.message where pos = 1) m, generate_series(1, MANY / 100) i;
insert into S.log (pos, queue, state, ended, received, generation, reason)
	select 1000000000 + 5 * i + k, 2, case k when 1 then 2 when 2 then 5 else 3 + i % 2 end, i * 1000000000::bigint, 1,
		case k when 2 then 2 end, 'handler'
	from generate_series(1, MANY) i, generate_series(1, 3) k;
insert into S.letter (pos, id, queue, type, status, cause, class, reason, signature, fingerprint, redrivable, needs_review, redrives,
		attempts, crashes, rule, text, first_failed, last_failed, died, resolved, note, revision, rank, blocks)
	select 1000000002 + 5 * i, gen_random_uuid(), 2, '', 'open', 'permanent', 'permanent', 'handler', 'no', 'no', true, false, 1, 1, 0, '',
		'again', 1, 1, i * 1000000000::bigint, 0, '', 2, 0, false
	from generate_series(1, MANY) i;
insert into S.failure (pos, ordinal, queue, at, failed, class, reason, decision, text, doc)
	select 1000000002 + 5 * i, k, 2, (i - 2 + k) * 1000000000::bigint, 1, 'permanent', 'handler', 'bury', 'again',
		'{"generation":' || k || ',"type":"app.Bad","stack":"at x"}'
	from generate_series(1, MANY) i, generate_series(1, 2) k`
