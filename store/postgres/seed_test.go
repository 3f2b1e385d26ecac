package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
	"github.com/nixie-go/nixie/store/storetest"
)

// outbox is a store whose queue publishes what is in strict streams.
type outbox struct {
	testing.TB
	*postgres.Store
	clock  *storetest.Clock
	pool   *pgxpool.Pool
	schema string
}

func newOutbox(t *testing.T) *outbox {
	t.Helper()
	o := &outbox{TB: t, clock: storetest.NewClock(), schema: newSchema(t)}
	t.Cleanup(func() { dropSchema(t, o.schema) })
	var err error
	o.Store, err = postgres.Open(t.Context(), server.URL, postgres.Options{Schema: o.schema, Clock: o.clock.Now, Owner: "publisher"})
	o.must(err)
	t.Cleanup(func() { o.must(o.Store.Close()) })
	o.pool, err = pgxpool.New(t.Context(), server.URL+"&jit=off")
	o.must(err)
	t.Cleanup(o.pool.Close)
	o.must(store.Configure(t.Context(), o, "outbox", nixie.QueueSettings{Order: nixie.OrderStrict}, "ann", "events in order"))
	return o
}

func (o *outbox) must(err error) {
	o.Helper()
	if err != nil {
		o.Fatal(err)
	}
}

// put stores messages of one stream.
func (o *outbox) put(keys ...string) {
	o.Helper()
	for _, key := range keys {
		_, err := o.Enqueue(o.Context(), nixie.Message{Queue: "outbox", Type: "event", Key: key, Stream: "customer-7", Body: []byte(`{}`)})
		o.must(err)
	}
}

// claim expects exactly the message of this key, or none.
func (o *outbox) claim(key string) *nixie.Delivery {
	o.Helper()
	ds, err := o.Claim(o.Context(), "outbox", nixie.Want{Max: 10, Lease: 30 * time.Second})
	o.must(err)
	got := ""
	for _, d := range ds {
		got += d.Key
	}
	if got != key {
		o.Fatalf("claimed %q, want %q", got, key)
	}
	if len(ds) == 0 {
		return nil
	}
	return ds[0]
}

func (o *outbox) settle(s nixie.Settlement) {
	o.Helper()
	o.must(o.Settle(o.Context(), []nixie.Settlement{s})[0])
}

// fail is a network error, to be tried again after a minute.
func (o *outbox) fail(d *nixie.Delivery) {
	o.Helper()
	o.settle(nixie.Settlement{Delivery: d, Verb: nixie.Retry, Delay: time.Minute, Failure: &nixie.Failure{
		Generation: d.Generation, Attempt: d.Attempts, FailedAt: o.clock.Now(), Class: nixie.ClassTransient,
		Reason: nixie.ReasonTransportUnavailable, Type: "net.OpError", Text: "Network timeout", Stack: "at send",
	}})
}

// row expects what a query on the views says of one message.
func (o *outbox) row(key, columns, want string) {
	o.Helper()
	var got string
	query := fmt.Sprintf("select concat_ws(' ', %s) from %s.nixie_outbox where message_id = (select id from %[2]s.message where key = $1)",
		columns, o.schema)
	o.must(o.pool.QueryRow(o.Context(), query, key).Scan(&got))
	if got != want {
		o.Fatalf("%s of %s is %q, want %q", columns, key, got, want)
	}
}

const (
	stored    = "1"
	failed    = "32769" // stored, and failed
	published = "7"
)

func TestFailsOutboxMessages_MarksAsFailedWithError(t *testing.T) {
	o := newOutbox(t)
	o.put("m1")
	o.row("m1", "status, attempts, scheduled_for, failure_reason", stored+" 0 99")
	d := o.claim("m1")
	d.Steps = []string{"EventStored"}
	o.fail(d)
	o.row("m1", "status, attempts, error, failure_reason", "32771 1 Network timeout 1")
	o.row("m1", "scheduled_for = to_timestamp("+fmt.Sprint(o.clock.Now().Add(time.Minute).Unix())+"), instance_id, lease_expiry", "t")
	o.clock.Advance(time.Minute)
	d = o.claim("m1")
	if !d.Done("EventStored") {
		t.Fatal("a step that was done is to be done again")
	}
	o.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete})
	o.row("m1", "status, attempts", published+" 2")
}

func TestStreamBasedFailureCascade_ReleasesLaterMessagesInSameStream(t *testing.T) {
	o := newOutbox(t)
	o.put("m1", "m2", "m3")
	o.fail(o.claim("m1"))
	o.claim("")
	n, err := o.Unblock(t.Context(), store.Unblocking{Queue: "outbox", Stream: "customer-7", Actor: "ann", Reason: "independent of m1",
		Mark: true})
	o.must(err)
	if n != 2 {
		t.Fatalf("%d were released, want 2", n)
	}
	o.row("m1", "status", failed)
	o.row("m2", "status, attempts, instance_id, lease_expiry", stored+" 0")
	o.row("m3", "status, attempts, instance_id, lease_expiry", stored+" 0")
	m2 := o.claim("m2")
	errs, next, err := o.Features().Exchange(t.Context(), []nixie.Settlement{{Delivery: m2, Verb: nixie.Complete}}, "outbox",
		nixie.Want{Max: 10})
	o.must(err)
	o.must(errs[0])
	if len(next) != 1 || next[0].Key != "m3" {
		t.Fatalf("the next batch is %v, want m3", next)
	}
	o.settle(nixie.Settlement{Delivery: next[0], Verb: nixie.Complete})
	o.row("m2", "status", published)
	o.row("m3", "status", published)
	o.clock.Advance(time.Minute)
	o.settle(nixie.Settlement{Delivery: o.claim("m1"), Verb: nixie.Complete})
}

func TestScheduledRetry_BlocksLaterMessagesInStream(t *testing.T) {
	o := newOutbox(t)
	o.put("m1", "m2")
	o.fail(o.claim("m1"))
	o.claim("")
	o.clock.Advance(time.Minute - time.Millisecond)
	o.claim("")
	o.row("m2", "status, attempts", stored+" 0")
}

func TestScheduledRetryExpires_UnblocksStream(t *testing.T) {
	o := newOutbox(t)
	o.put("m1", "m2")
	o.fail(o.claim("m1"))
	o.clock.Advance(time.Minute)
	d := o.claim("m1")
	o.claim("")
	o.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete})
	o.settle(nixie.Settlement{Delivery: o.claim("m2"), Verb: nixie.Complete})
}

// TestPurgedJobIsDeletedInTheLog purges a letter: the log of jobs has its job, as long as
// the audit has the purge.
func TestPurgedJobIsDeletedInTheLog(t *testing.T) {
	o := newOutbox(t)
	o.put("m1")
	d := o.claim("m1")
	o.settle(nixie.Settlement{Delivery: d, Verb: nixie.Bury, Burial: &nixie.Burial{Cause: nixie.CausePermanent, Status: nixie.StatusOpen}})
	l := o.letter("m1")
	o.resolve(l, store.OnDiscard)
	o.resolve(l, store.OnPurge)
	entries := "select from " + o.schema + ".nixie_job_log where job_id = '" + d.ID.String() + "'"
	if n := o.count(t.Context(), entries+" and status = 'deleted'"); n != 1 {
		t.Errorf("%d entries of the job are deleted", n)
	}
	_, err := o.Adjust(t.Context(), d.Queue, "ann", "", func(q *nixie.QueueSettings) error { q.Paused = true; return nil })
	o.must(err) // the newest entry of an audit stays
	o.clock.Advance(10 * 365 * 24 * time.Hour)
	for next := ""; ; {
		done, err := o.Prune(t.Context(), store.Pruning{Cursor: next})
		o.must(err)
		if next = done.Next; next == "" {
			break
		}
	}
	if n := o.count(t.Context(), entries); n != 0 {
		t.Errorf("%d entries of the job outlive the audit", n)
	}
	if n := o.count(t.Context(),
		"select from "+o.schema+".purged where letter not in (select subject from "+o.schema+".entry where event = 'purge')"); n != 0 {
		t.Errorf("%d purges are kept longer than the audit", n)
	}
}

// TestPurgedAgainIsDeletedInTheLog purges a letter that was taken in again after a purge: its
// job is in the log as long as the audit has either.
func TestPurgedAgainIsDeletedInTheLog(t *testing.T) {
	o := newOutbox(t)
	o.put("m1")
	d := o.claim("m1")
	o.settle(nixie.Settlement{Delivery: d, Verb: nixie.Bury, Burial: &nixie.Burial{Cause: nixie.CausePermanent, Status: nixie.StatusOpen}})
	l := o.letter("m1")
	purge := func() {
		o.resolve(l, store.OnDiscard)
		o.resolve(l, store.OnPurge)
		o.clock.Advance(nixie.DefaultAuditRetention - time.Hour)
	}
	purge()
	_, errs := o.Adopt(t.Context(), []nixie.Letter{*l}, "ann", "it was needed")
	o.must(errs[0])
	purge()
	for next := ""; ; {
		done, err := o.Prune(t.Context(), store.Pruning{Cursor: next})
		o.must(err)
		if next = done.Next; next == "" {
			break
		}
	}
	purges := "select from " + o.schema + ".entry where event = 'purge'"
	if n := o.count(t.Context(), purges); n != 1 {
		t.Fatalf("the audit has %d purges, not the second alone", n)
	}
	if n := o.count(t.Context(), "select from "+o.schema+".nixie_job_log('"+d.ID.String()+"') where status = 'deleted'"); n != 1 {
		t.Errorf("%d entries of the job are deleted", n)
	}
}

// TestSeedSQLAnswersWhatPeopleAsk runs the questions that users of outboxes and of
// logs of jobs are used to, with only the names of the tables changed.
func TestSeedSQLAnswersWhatPeopleAsk(t *testing.T) {
	o := newOutbox(t)
	o.put("m1", "m2")
	o.fail(o.claim("m1"))
	_, err := o.Enqueue(t.Context(), nixie.Message{Queue: "jobs", Key: "j1"}, nixie.Message{Queue: "jobs", Key: "j2"})
	o.must(err)
	ds, err := o.Claim(t.Context(), "jobs", nixie.Want{Max: 2})
	o.must(err)
	o.settle(nixie.Settlement{
		Delivery: ds[0], Verb: nixie.Bury, Burial: &nixie.Burial{Cause: nixie.CausePermanent, Status: nixie.StatusOpen},
		Failure: &nixie.Failure{FailedAt: o.clock.Now(), Type: "app.Bad", Text: "no such user", Stack: "line\x00 1",
			Reason: nixie.ReasonHandler, Class: nixie.ClassPermanent},
	})
	_, err = o.pool.Exec(t.Context(), "update "+o.schema+".owner set seen = now() - interval '11 minutes'")
	o.must(err)
	for _, ask := range []struct {
		query string
		want  int // rows
	}{
		{`SELECT message_id, destination, event_type, attempts, error, scheduled_for, created_at FROM wh_outbox WHERE attempts >= 10
			AND (status & 32768) = 32768 AND scheduled_for IS NOT NULL ORDER BY attempts DESC, created_at ASC`, 0},
		{"SELECT attempts, COUNT(*) as message_count FROM wh_outbox WHERE (status & 32768) = 32768 GROUP BY attempts ORDER BY attempts", 1},
		{`SELECT failure_reason, COUNT(*) as count FROM wh_outbox WHERE (status & 32768) = 32768 GROUP BY failure_reason
			ORDER BY count DESC`, 2},
		{`SELECT COUNT(*) as scheduled_count, MIN(scheduled_for) as next_retry, MAX(scheduled_for) as latest_retry FROM wh_outbox
			WHERE scheduled_for IS NOT NULL AND scheduled_for > NOW()`, 1},
		{"SELECT COUNT(*) as poison_candidates FROM wh_outbox WHERE attempts >= 10 AND (status & 32768) = 32768", 1},
		{"SELECT message_id, attempts, error, scheduled_for FROM wh_outbox WHERE message_id = '" + ds[0].ID.String() + "'", 1},
		{"SELECT failure_reason FROM wh_outbox WHERE message_id = '" + ds[0].ID.String() + "'", 1},
		{"SELECT event_data FROM wh_outbox WHERE message_id = '" + ds[0].ID.String() + "'", 1},
		{`SELECT message_id, created_at, attempts, scheduled_for FROM wh_outbox WHERE stream_id = 'customer-7'
			ORDER BY created_at ASC LIMIT 1`, 1},
		{"SELECT attempts FROM wh_outbox WHERE message_id = '" + ds[0].ID.String() + "'", 1},
		{`SELECT job_id, entrypoint, exception_type, exception_message, traceback FROM pgqueuer_log WHERE status = 'exception'
			ORDER BY created DESC LIMIT 20`, 1},
		{`SELECT id, entrypoint, status, heartbeat, updated FROM pgqueuer WHERE status = 'picked'
			AND heartbeat < NOW() - INTERVAL '10 minutes' ORDER BY heartbeat ASC`, 1},
	} {
		query := strings.NewReplacer("wh_outbox", o.schema+".nixie_outbox", "pgqueuer_log", o.schema+".nixie_job_log", "pgqueuer",
			o.schema+".nixie_jobs").Replace(ask.query)
		if got := o.count(t.Context(), query); got != ask.want {
			t.Errorf("%d rows, want %d: %s", got, ask.want, query)
		}
	}
}

func (o *outbox) count(ctx context.Context, query string) (n int) {
	o.Helper()
	rows, err := o.pool.Query(ctx, query)
	o.must(err)
	defer rows.Close()
	for rows.Next() {
		n++
	}
	o.must(rows.Err())
	return n
}
