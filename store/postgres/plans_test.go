package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
)

// TestPlansOfEmptyTables lets PostgreSQL look at tables while they are empty, as it
// does when a queue is drained, and then gives them much to do on one connection,
// whose plans are made for what it saw: what a message costs does not grow with how
// many there are.
func TestPlansOfEmptyTables(t *testing.T) {
	reads(t, 300, vanish, whileEmpty)
	reads(t, 300, vanish, atFirst)
}

// TestPlansAnalyzedMeanwhile lets PostgreSQL look again and again at tables that
// fill, so that plans are made for what it saw in the middle.
func TestPlansAnalyzedMeanwhile(t *testing.T) {
	reads(t, 300, vanish, always)
}

// TestPlansOfFailures is the same for messages that fail, and are claimed, retried,
// buried and completed a few at a time.
func TestPlansOfFailures(t *testing.T) {
	reads(t, 30, stumble, whileEmpty)
	reads(t, 30, stumble, atFirst)
	reads(t, 30, stumble, always)
}

// TestPlansOfIDs is the same for messages that are told by their IDs.
func TestPlansOfIDs(t *testing.T) {
	reads(t, 20, seek, whileEmpty)
	reads(t, 20, seek, atFirst)
	reads(t, 20, seek, always)
}

// TestPlansOfChecks is the same for a check of all tables, with messages that wait and letters. A
// table of up to eight pages may be read whole for each message: that costs what an index does.
func TestPlansOfChecks(t *testing.T) {
	reads(t, 100, inspect, whileEmpty)
	reads(t, 2000, inspect, atFirst)
	reads(t, 100, inspect, always)
}

func inspect(t *testing.T, s *postgres.Store, schema string, messages int) {
	t.Helper()
	stumble(t, s, schema, messages)
	_, err := s.Enqueue(t.Context(), ofMany(messages)...)
	must(t, err)
	report, err := s.Check(t.Context())
	must(t, err)
	if len(report.Violations) > 0 {
		t.Error(report.Violations)
	}
}

// looks says when PostgreSQL looks at the tables; it makes plans for what it saw.
type looks int

const (
	whileEmpty looks = iota // and never again
	atFirst                 // when they have what one message leaves
	always
)

// looking lets PostgreSQL look at the tables again and again until the context is over.
func looking(ctx context.Context, look looks) error {
	if look != always {
		return nil
	}
	conn, err := pgx.Connect(ctx, server.URL)
	if err != nil {
		return err
	}
	for err == nil {
		_, err = conn.Exec(ctx, "analyze")
	}
	return errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
}

// alone keeps the server from analyzing tables while few rows are in them: a test decides
// what runs at the same time.
func alone(t *testing.T, schema string) {
	t.Helper()
	const all = `do $$ declare t text; begin for t in select format('%I.%I', schemaname, tablename) from pg_tables 
		where schemaname = 'SCHEMA' loop execute 'alter table ' || t || ' DO'; end loop; end $$`
	set := func(what string) { run(t, server.URL, strings.NewReplacer("SCHEMA", schema, "DO", what).Replace(all)) }
	set("set (autovacuum_enabled = off)")
	t.Cleanup(func() { set("reset (autovacuum_enabled)") })
}

// reads counts what is read for many messages in tables that were empty: it allows most
// rows for each message.
func reads(t *testing.T, most int, work func(*testing.T, *postgres.Store, string, int), look looks) {
	t.Helper()
	const messages = 600
	list, schema := crowd(t, 1)
	alone(t, schema)
	execute(t, "vacuum analyze")
	work(t, list[0], schema, 1) // plans are made
	if look == atFirst {
		execute(t, "analyze")
	}
	before := readingOf(t, schema, ofTables)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- looking(ctx, look) }()
	work(t, list[0], schema, messages)
	stop()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for _, s := range list {
		must(t, s.Close())
	}
	deadlocks(t) // waits until they are gone, and have told what they read
	before.bounded(t, schema, ofTables, fmt.Sprint(2*messages, " messages"), 2*messages*most)
}

// vanish lets a process vanish with messages of each kind of queue, of which it has
// begun half; another process judges some of them.
func vanish(t *testing.T, s *postgres.Store, schema string, messages int) {
	t.Helper()
	for i, order := range []nixie.Order{nixie.OrderNone, nixie.OrderStrict, nixie.OrderStrict} {
		queue, ordered := fmt.Sprint("q-", i, order, messages), i == 2
		must(t, store.Configure(t.Context(), s, queue, nixie.QueueSettings{Order: order}, "ann", ""))
		ms := make([]nixie.Message, messages)
		for i := range ms {
			ms[i] = nixie.Message{Queue: queue, Stream: fmt.Sprint("s", i), DedupeKey: fmt.Sprint("k", i)}
			if ordered {
				ms[i].DedupeKey = ""
			}
		}
		_, err := s.Enqueue(t.Context(), ms...)
		must(t, err)
		vanished, err := postgres.Open(t.Context(), server.URL, postgres.Options{Schema: schema})
		must(t, err)
		ds, err := vanished.Claim(t.Context(), queue, nixie.Want{Max: messages, Lease: time.Hour, LogProgress: true})
		must(t, err)
		if len(ds) != messages {
			t.Fatalf("%d were claimed", len(ds))
		}
		must(t, vanished.LogProgress(lease.Begun, ds[:(messages+1)/2]...))
		must(t, vanished.Crash())
		judged, err := s.Claim(t.Context(), queue, nixie.Want{Max: 1})
		must(t, err)
		if len(judged) != (messages+1)/2 {
			t.Fatalf("%d of %d are to be judged", len(judged), messages)
		}
		for n := range min(len(judged), 20) {
			d := judged[n : n+1]
			f := &nixie.Failure{FailedAt: time.Unix(1, 0), Text: "no"}
			must(t, s.Settle(t.Context(), []nixie.Settlement{{Delivery: d[0], Verb: nixie.Retry, Delay: time.Hour, Failure: f}})[0])
		}
	}
}

// seek enqueues messages whose IDs say their positions and as many whose IDs do not,
// and cancels them.
func seek(t *testing.T, s *postgres.Store, _ string, messages int) {
	t.Helper()
	ms := make([]nixie.Message, 2*messages)
	for i := range ms {
		ms[i].Queue = fmt.Sprint("i-", messages)
		if i%2 == 0 {
			ms[i].ID = new(store.IDs).New(time.Now())
		}
	}
	receipts, err := s.Enqueue(t.Context(), ms...)
	must(t, err)
	for _, err := range s.Amend(t.Context(), eachID(receipts), store.Change{Verb: store.Cancel, Actor: "ann"}) {
		must(t, err)
	}
}

// stumble lets messages fail, a few at a time. The first claim takes all, so
// that they are members of one batch.
func stumble(t *testing.T, s *postgres.Store, _ string, messages int) {
	t.Helper()
	queue := fmt.Sprint("f-", messages)
	ms := make([]nixie.Message, messages)
	for i := range ms {
		ms[i] = nixie.Message{Queue: queue}
	}
	_, err := s.Enqueue(t.Context(), ms...)
	must(t, err)
	settle := func(d *nixie.Delivery, verb nixie.Verb) {
		st := nixie.Settlement{Delivery: d, Verb: verb, Failure: &nixie.Failure{FailedAt: time.Unix(1, 0), Text: "no"}}
		if verb == nixie.Bury {
			st.Burial = &nixie.Burial{Cause: nixie.CauseExhausted, Status: nixie.StatusOpen}
		}
		must(t, s.Settle(t.Context(), []nixie.Settlement{st})[0])
	}
	claim := func(most int) []*nixie.Delivery {
		ds, err := s.Claim(t.Context(), queue, nixie.Want{Max: most, Lease: time.Hour})
		must(t, err)
		if len(ds) != most {
			t.Fatalf("%d were claimed, not %d", len(ds), most)
		}
		return ds
	}
	for _, d := range claim(messages) {
		settle(d, nixie.Retry)
	}
	for i := range messages {
		d := claim(1)[0]
		switch i % 3 {
		case 0:
			settle(d, nixie.Bury)
		case 1:
			settle(d, nixie.Retry)
			settle(claim(1)[0], nixie.Bury)
		default:
			must(t, s.Settle(t.Context(), []nixie.Settlement{{Delivery: d, Verb: nixie.Complete}})[0])
		}
	}
}

// reading counts the rows that were read of each table, or by each index, of a schema.
type reading map[string]int

// What is counted. Rows that are gone are not among those of tables: how many of them are
// stepped over hangs on how long a snapshot keeps them, and so on how busy the
// machine is. What indexes found has them too.
const (
	ofTables  = "select relname, coalesce(idx_tup_fetch, 0) + seq_tup_read from pg_stat_user_tables where schemaname = $1"
	ofIndexes = "select indexrelname, idx_tup_read from pg_stat_user_indexes where schemaname = $1"
)

func readingOf(t *testing.T, schema, counted string) reading {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.URL)
	must(t, err)
	defer func() { must(t, conn.Close(t.Context())) }()
	rows, err := conn.Query(t.Context(), counted, schema)
	must(t, err)
	all, name, n := reading{}, "", 0
	_, err = pgx.ForEachRow(rows, []any{&name, &n}, func() error { all[name] = n; return nil })
	must(t, err)
	return all
}

// bounded expects that at most most rows were read since then, and says of
// which tables most were.
func (then reading) bounded(t *testing.T, schema, counted, what string, most int) {
	t.Helper()
	since, sum := readingOf(t, schema, counted), 0
	for name, n := range then {
		since[name] -= n
	}
	for _, n := range since {
		sum += n
	}
	names := slices.Collect(maps.Keys(since))
	slices.SortFunc(names, func(a, b string) int { return since[b] - since[a] })
	busiest := names[:min(len(names), 4)]
	for i, name := range busiest {
		busiest[i] = fmt.Sprint(name, " ", since[name])
	}
	t.Logf("%s: %d rows were read, at most %d are wanted; most of them %v", what, sum, most, busiest)
	if sum > most {
		t.Fail()
	}
}

// TestPlansOfTokens is TestPlansOfFailures for messages of ordered paths that succeed, of which
// more are ready than claims have room for.
func TestPlansOfTokens(t *testing.T) {
	reads(t, 7, takeTokens, whileEmpty)
	reads(t, 7, takeTokens, atFirst)
	reads(t, 7, takeTokens, always)
}

func takeTokens(t *testing.T, s *postgres.Store, _ string, messages int) {
	t.Helper()
	queue := fmt.Sprint("t-", messages)
	must(t, store.Configure(t.Context(), s, queue, strict(), "ann", ""))
	ms := make([]nixie.Message, messages)
	for i := range ms {
		ms[i] = nixie.Message{Queue: queue, Stream: fmt.Sprint("s", i%100)}
	}
	_, err := s.Enqueue(t.Context(), ms...)
	must(t, err)
	for left := messages; left > 0; {
		ds, err := s.Claim(t.Context(), queue, nixie.Want{Max: 10, Lease: time.Hour})
		must(t, err)
		if len(ds) == 0 {
			t.Fatalf("%d did not come", left)
		}
		for half := range slices.Chunk(ds, max(1, len(ds)/2)) {
			list := make([]nixie.Settlement, len(half))
			for i, d := range half {
				list[i] = nixie.Settlement{Delivery: d, Verb: nixie.Complete}
			}
			for _, err := range s.Settle(t.Context(), list) {
				must(t, err)
			}
		}
		left -= len(ds)
	}
}

// TestLeasedOnesAreFoundAmongMany lists a few leased messages among many that ended: it reads
// those, and not all.
func TestLeasedOnesAreFoundAmongMany(t *testing.T) {
	const ended, held = 2000, 3
	list, schema := crowd(t, 1)
	alone(t, schema)
	s := list[0]
	for range 2 {
		_, err := s.Enqueue(t.Context(), ofMany(ended/2)...)
		must(t, err)
	}
	ds, err := s.Claim(t.Context(), "many", nixie.Want{Max: ended, Lease: time.Hour})
	must(t, err)
	done := make([]nixie.Settlement, len(ds))
	for i, d := range ds {
		done[i] = nixie.Settlement{Delivery: d, Verb: nixie.Complete}
	}
	must(t, errors.Join(s.Settle(t.Context(), done)...))
	_, err = s.Enqueue(t.Context(), ofMany(held)...)
	must(t, err)
	_, err = s.Claim(t.Context(), "many", nixie.Want{Max: held, Lease: time.Hour})
	must(t, err)
	execute(t, "vacuum analyze")
	must(t, s.Close())
	deadlocks(t) // waits until it is gone, and has told what it read
	before := readingOf(t, schema, ofTables)
	reader, err := postgres.Open(t.Context(), server.URL, postgres.Options{Schema: schema})
	must(t, err)
	found, _, err := reader.Messages(t.Context(), nixie.Filter{States: []nixie.State{nixie.Leased}}, store.Page{})
	must(t, errors.Join(err, reader.Close()))
	if len(found) != held {
		t.Errorf("%d are leased, not %d", len(found), held)
	}
	deadlocks(t)
	before.bounded(t, schema, ofTables, "a list of leased messages", ended/4)
}

func ofMany(n int) []nixie.Message {
	ms := make([]nixie.Message, n)
	for i := range ms {
		ms[i].Queue = "many"
	}
	return ms
}

// TestEntriesOfALetterAreFoundAmongMany reads what the audit says about a letter among many: it
// reads those entries, and not all.
func TestEntriesOfALetterAreFoundAmongMany(t *testing.T) {
	const letters, atOnce = 1500, 15 // of more in a call the entries would share rows
	list, schema := crowd(t, 1)
	alone(t, schema)
	dead := make([]nixie.Letter, letters)
	for i := range dead {
		died := time.Now()
		dead[i] = nixie.Letter{Message: nixie.Message{Queue: "q"}, Status: nixie.StatusOpen, Cause: nixie.CauseExhausted, DiedAt: died,
			FirstFailedAt: died, LastFailedAt: died}
	}
	var receipts []nixie.Receipt
	for call := range slices.Chunk(dead, atOnce) {
		some, errs := list[0].Adopt(t.Context(), call, "ann", "found")
		must(t, errors.Join(errs...))
		receipts = append(receipts, some...)
	}
	found, _, err := list[0].Letters(t.Context(), nixie.Filter{IDs: []nixie.ID{receipts[letters/2].ID}}, store.Page{})
	must(t, err)
	execute(t, "vacuum analyze")
	must(t, list[0].Close())
	deadlocks(t) // waits until it is gone, and has told what it read
	before := readingOf(t, schema, ofTables)
	reader, err := postgres.Open(t.Context(), server.URL, postgres.Options{Schema: schema})
	must(t, err)
	entries, _, err := reader.Audit(t.Context(), store.AuditFilter{Subjects: []nixie.ID{found[0].ID}, Oldest: true}, store.Page{})
	must(t, errors.Join(err, reader.Close()))
	if len(entries) == 0 {
		t.Error("the audit says nothing about the letter")
	}
	deadlocks(t)
	before.bounded(t, schema, ofTables, "the audit of a letter", letters/4)
}
