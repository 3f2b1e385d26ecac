package postgres_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
)

// TestViewsFindByIndex asks the views for few of very many messages: by IDs that say
// positions and by others, by queue, by status. How much is read does not hang on how many
// there are, once PostgreSQL has looked at the tables, which autovacuum sees to; and none of
// it is compiled. With an index of one's own the same is true of conditions on IDs.
func TestViewsFindByIndex(t *testing.T) {
	schema := freshSchema(t) // what other tests left in the indexes of theirs would count
	s, err := postgres.Open(t.Context(), server.URL, postgres.Options{Schema: schema, Owner: "owner-0"})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	oldOnes(t, s)
	given := nixie.Message{ID: new(store.IDs).New(time.Now()), Queue: "new"}
	ms := []nixie.Message{given}
	for range 60 {
		ms = append(ms, nixie.Message{Queue: "new"})
	}
	receipts, err := s.Enqueue(t.Context(), ms...)
	must(t, err)
	ids := eachID(receipts)
	letters, _, err := s.Letters(t.Context(), nixie.Filter{}, store.Page{})
	must(t, err)
	purged := letters[0].Message.ID
	for _, on := range [...]store.Event{store.OnDiscard, store.OnPurge} {
		must(t, s.Resolve(t.Context(), []store.Resolution{{Letter: letters[0].ID, Event: on, Actor: "ann", Reason: "for a test"}})[0])
	}

	conn, err := pgx.Connect(t.Context(), server.URL)
	must(t, err)
	defer func() { must(t, conn.Close(t.Context())) }()
	quoted := make([]string, len(ids))
	for i, id := range ids {
		quoted[i] = "'" + id.String() + "'"
	}
	of := func(id nixie.ID) string { return "('" + id.String() + "')" }
	execute(t, "vacuum analyze") // what other rows have left is no plan's fault
	find := func(asks ...question) {
		t.Helper()
		for _, ask := range asks {
			a := explained(t, conn, strings.ReplaceAll(ask.query, "S.", schema+"."))
			if most := 200 + 100*ask.rows; a.rows != ask.rows || a.pages > most || a.cost > compiled {
				t.Errorf("%+v, %d rows are wanted from at most %d pages, for a cost of at most %d: %s", a, ask.rows, most, compiled,
					ask.query)
			}
		}
	}
	find([]question{
		{"select * from S.nixie_outbox" + of(ids[0]), 1},
		{"select * from S.nixie_outbox" + of(given.ID), 1},
		{"select status from S.nixie_outbox" + of(letters[1].Message.ID) + " where status = 32769", 1},
		{"select * from S.nixie_outbox(" + strings.Join(quoted, ", ") + ") order by created_at", len(ids)},
		{"select * from S.nixie_outbox(variadic array(select id from S.message order by pos desc limit 20))", 20},
		{"select * from S.nixie_job_log" + of(letters[1].Message.ID), 1},
		{"select * from S.nixie_job_log" + of(purged) + " where status = 'deleted'", 1},
		{"select * from S.nixie_jobs" + of(given.ID), 1},
		{"select * from S.nixie_outbox where (status & 32768) = 32768 limit 10", 10},
		{`select * from S.nixie_outbox where (status & 32768) = 32768 and attempts >= 1 and scheduled_for is not null
			order by attempts desc, created_at`, 10},
		{"select * from S.nixie_outbox where destination = 'old' and status = 32769 limit 100", 19},
		{"select * from S.nixie_job_log where status = 'exception' order by created desc limit 20", 9},
		{"select * from S.nixie_job_log where entrypoint = 'old' and status = 'deleted' limit 20", 11},
	}...)

	execute(t, "create index own_ids on "+schema+".message (id)")
	defer execute(t, "drop index "+schema+".own_ids")
	find([]question{
		{"select * from S.nixie_outbox where message_id = '" + given.ID.String() + "'", 1},
		{"select * from S.nixie_outbox where message_id = '" + letters[1].Message.ID.String() + "'", 1},
		{"select status from S.nixie_outbox where message_id in (" + strings.Join(quoted[:3], ", ") + ")", 3},
		{"select * from S.nixie_job_log where job_id = '" + purged.String() + "' and status = 'deleted'", 1},
	}...)
}

// question is a query, and how many rows answer it.
type question struct {
	query string
	rows  int
}

// compiled is the estimated cost above which PostgreSQL compiles a query, unless it is told
// otherwise (jit_above_cost).
const compiled = 100_000

// oldOnes are 110,000 messages of which few are retried, have died or were discarded, ten
// each, and all others have succeeded.
func oldOnes(t *testing.T, s *postgres.Store) {
	t.Helper()
	const many, calls = nixie.MaxBatch, 11
	for call := range calls {
		ms := make([]nixie.Message, many)
		for i := range ms {
			ms[i].Queue = "old"
		}
		_, err := s.Enqueue(t.Context(), ms...)
		must(t, err)
		ds, err := s.Claim(t.Context(), "old", nixie.Want{Max: many, Lease: time.Hour})
		must(t, err)
		st := make([]nixie.Settlement, len(ds))
		for i, d := range ds {
			st[i] = nixie.Settlement{Delivery: d, Verb: nixie.Complete}
			if i >= 30 || call > 0 {
				continue
			}
			verb := [...]nixie.Verb{nixie.Retry, nixie.Bury, nixie.Discard}[i%3]
			st[i] = nixie.Settlement{Delivery: d, Verb: verb, Delay: time.Hour,
				Failure: &nixie.Failure{FailedAt: time.Unix(1, 0), Text: "no", Reason: nixie.ReasonHandler, Class: nixie.ClassPermanent}}
			if verb == nixie.Bury {
				st[i].Delay, st[i].Burial = 0, &nixie.Burial{Cause: nixie.CausePermanent, Status: nixie.StatusOpen}
			}
		}
		for _, err := range s.Settle(t.Context(), st) {
			must(t, err)
		}
	}
}

// answer has the rows that a query found, the pages that it read, and the estimated cost of its
// plan.
type answer struct{ rows, pages, cost int }

// explained runs a query.
func explained(t *testing.T, conn *pgx.Conn, query string) answer {
	t.Helper()
	var text string
	must(t, conn.QueryRow(t.Context(), "explain (analyze, buffers, timing off, format json) "+query).Scan(&text))
	var plans []struct {
		Plan struct {
			Rows float64 `json:"Actual Rows"`
			Hit  int     `json:"Shared Hit Blocks"`
			Read int     `json:"Shared Read Blocks"`
			Cost float64 `json:"Total Cost"`
		}
	}
	must(t, json.Unmarshal([]byte(text), &plans))
	p := plans[0].Plan
	return answer{int(p.Rows), p.Hit + p.Read, int(p.Cost)}
}

// TestViewsAgree brings messages into every state, and expects that each is in the outbox
// once, that each generation that has ended is in the log of jobs and the others are among the
// jobs, and that the same is said of those whose IDs are given.
func TestViewsAgree(t *testing.T) {
	o := newOutbox(t)
	everyState(o)
	for query, what := range map[string]string{
		`select c.id from S.current c left join S.nixie_outbox o on o.message_id = c.id group by c.id
			having count(o.message_id) <> 1`: "messages are not once in the outbox",
		`select from S.nixie_outbox o where o.message_id not in 
			(select id from S.message)`: "rows of the outbox are about no message",
		`select c.id from S.current c left join lateral
			(select l.status from S.nixie_job_log l where l.job_id = c.id order by l.created desc limit 1) l on true
			where l.status is distinct from case c.state when 2 then 'successful' when 3 then 'deleted' when 4 then 'canceled'
			when 5 then 'exception' else case when c.redrives > 0 then 'exception' end end`: "messages are otherwise in the log of jobs",
		`select l.job_id from S.nixie_job_log l join S.current c on c.id = l.job_id group by l.job_id, c.redrives, c.state
			having count(*) <> c.redrives + case when c.state > 1 then 1 else 0 end`: "messages have no row for a generation that ended",
		`select c.id from S.current c left join S.nixie_jobs j on j.id = c.id 
			where (j.id is null) = (c.state in (0, 1))`: "messages are otherwise among the jobs",
		`select from (select * from S.nixie_outbox except select * from S.nixie_outbox(variadic 
			array(select id from S.message))) x`: "are in the outbox otherwise when they are asked for by their IDs",
		`select from (select * from S.nixie_job_log except select * from S.nixie_job_log(variadic array(select id from S.message
			union all select message from S.purged))) x`: "are in the log of jobs otherwise when they are asked for by their IDs",
		`select from (select * from S.nixie_jobs except select * from S.nixie_jobs(variadic 
			array(select id from S.message))) x`: "are among the jobs otherwise when they are asked for by their IDs",
		`select from S.current c join S.nixie_outbox o on o.message_id = c.id where (o.status = 7) <> (c.state = 2)
			or ((o.status & 32768) = 32768) <> (c.reason <> '' and c.state in (0, 1, 5))`: "have another status",
	} {
		if n := o.count(t.Context(), strings.ReplaceAll(query, "S.", o.schema+".")); n > 0 {
			t.Errorf("%d %s: %s", n, what, query)
		}
	}
	const states = "select distinct state, location from S.current"
	if n := o.count(t.Context(), strings.ReplaceAll(states, "S.", o.schema+".")); n < 9 {
		t.Errorf("only %d kinds of messages are there", n)
	}
}

// everyState makes messages that wait, are out, and have ended, in all ways in which that
// is kept.
func everyState(o *outbox) {
	o.Helper()
	settle := func(d *nixie.Delivery, verb nixie.Verb) {
		st := nixie.Settlement{Delivery: d, Verb: verb}
		if verb != nixie.Complete {
			st.Failure = &nixie.Failure{FailedAt: o.clock.Now(), Text: "no " + d.ID.String(), Type: "app.Bad", Reason: nixie.ReasonTimeout,
				Class: nixie.ClassTransient}
		}
		if verb == nixie.Bury {
			st.Burial = &nixie.Burial{Cause: nixie.CausePermanent, Status: nixie.StatusOpen}
		}
		o.settle(st)
	}
	for i, queue := range [...]string{"outbox", "jobs"} {
		ms := make([]nixie.Message, 80)
		for j := range ms {
			ms[j] = nixie.Message{Queue: queue, Body: []byte("{}")}
			if i == 0 {
				ms[j].Stream = fmt.Sprint("s", j%40)
			}
		}
		receipts, err := o.Enqueue(o.Context(), ms...)
		o.must(err)
		ds, err := o.Claim(o.Context(), queue, nixie.Want{Max: 40, Lease: time.Hour})
		o.must(err)
		for j, verb := range [...]nixie.Verb{nixie.Complete, nixie.Retry, nixie.Bury, nixie.Discard, nixie.Bury, nixie.Bury} {
			settle(ds[j], verb)
		}
		group := make([]nixie.Settlement, 10)
		for j := range group {
			group[j] = nixie.Settlement{Delivery: ds[10+j], Verb: nixie.Complete}
		}
		for _, err := range o.Settle(o.Context(), group) {
			o.must(err)
		}
		for _, err := range o.Amend(o.Context(), []nixie.ID{receipts[79].ID, receipts[78].ID},
			store.Change{Verb: store.Cancel, Actor: "ann"}) {
			o.must(err)
		}
		letters, _, err := o.Letters(o.Context(), nixie.Filter{Queues: []string{queue}}, store.Page{})
		o.must(err)
		o.resolve(&letters[0], store.OnRedrive)
		o.resolve(&letters[1], store.OnDiscard)
		o.resolve(&letters[1], store.OnPurge)
	}
	_, err := o.Enqueue(o.Context(), nixie.Message{Queue: "jobs", NotBefore: o.clock.Now().Add(time.Hour)})
	o.must(err)
}
