package postgres_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
)

// bySQL enqueues by the function of a schema, in a transaction.
type bySQL struct {
	on interface {
		QueryRow(context.Context, string, ...any) pgx.Row
	}
	schema string
}

// Enqueue implements nixie.Enqueuer for what the function can say: no ID, no moment, no origin.
func (b bySQL) Enqueue(ctx context.Context, messages ...nixie.Message) (receipts []nixie.Receipt, err error) {
	for i := range messages {
		m := &messages[i]
		var expires, headers, conflict any
		if !m.ExpiresAt.IsZero() {
			expires = time.Until(m.ExpiresAt)
		}
		if len(m.Headers) > 0 {
			list, err := json.Marshal(m.Headers)
			if err != nil {
				return nil, err
			}
			headers = string(list)
		}
		if m.OnConflict == nixie.FailOnConflict {
			conflict = "fail"
		}
		var id [16]byte
		var r nixie.Receipt
		query := "select id, duplicate, different from " + b.schema +
			".enqueue($1, $2::bytea, $3, $4, $5, $6, $7::interval, $8::jsonb, $9, $10::interval, $11)"
		args := []any{m.Queue, append([]byte{}, m.Body...), m.Type, m.Key, m.Stream, m.DedupeKey, m.Delay, headers, m.Priority,
			expires, conflict}
		if err := b.on.QueryRow(ctx, query, args...).Scan(&id, &r.Duplicate, &r.Different); err != nil {
			return nil, err
		}
		r.ID = id
		receipts = append(receipts, r)
	}
	return receipts, nil
}

// told returns the text and the code of an error of the server.
func told(err error) (text, code string) {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return fmt.Sprint(err), ""
	}
	return pg.Message, pg.Code
}

// connected opens a connection for a test.
func connected(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	must(t, err)
	t.Cleanup(func() { must(t, c.Close(context.Background())) })
	return c
}

// TestSQLEnqueueRefusals lets SQL and the library refuse the same messages, in the same words.
func TestSQLEnqueueRefusals(t *testing.T) {
	list, schema := crowd(t, 1)
	ctx, s, c := t.Context(), list[0], connected(t, server.URL)
	must(t, store.Configure(ctx, s, "shut", nixie.QueueSettings{Closed: true}, "ann", ""))
	must(t, store.Configure(ctx, s, "noted", nixie.QueueSettings{Closed: true, ClosedNote: "we move"}, "ann", ""))
	_, err := s.Enqueue(ctx, nixie.Message{Queue: "q", DedupeKey: `k"1`})
	must(t, err)
	long := strings.Repeat("x", nixie.MaxName+1)
	header := func(name, value string) []nixie.Header { return []nixie.Header{{Name: name, Value: value}} }
	for _, tt := range []struct {
		name, code string
		m          nixie.Message
	}{
		{"no queue", "22023", nixie.Message{}},
		{"queue too long", "22023", nixie.Message{Queue: long}},
		{"type too long", "22023", nixie.Message{Queue: "q", Type: long}},
		{"key too long", "22023", nixie.Message{Queue: "q", Key: long}},
		{"stream too long", "22023", nixie.Message{Queue: "q", Stream: long}},
		{"dedupe key too long", "22023", nixie.Message{Queue: "q", DedupeKey: strings.Repeat("ä", 128)}},
		{"queue with a line", "22023", nixie.Message{Queue: "a\nb"}},
		{"type with a bell", "22023", nixie.Message{Queue: "q", Type: "a\a\b\t\v\f\r\x01\x1b\"\\"}},
		{"key with a late control", "22023", nixie.Message{Queue: "q", Key: "ü\u0085\u009f\x7f\u200b\u00a0\ufeff€"}},
		{"long stream with a control", "22023", nixie.Message{Queue: "q", Stream: strings.Repeat("y", 39) + "ä\n"}},
		{"as long as is shown", "22023", nixie.Message{Queue: "q", Stream: strings.Repeat("y", 39) + "\n"}},
		{"dedupe key with a control", "22023", nixie.Message{Queue: "q", DedupeKey: "€€€€€€€€€€€€€€\n"}},
		{"body of 17 MB", "22023", nixie.Message{Queue: "q", Body: bytes.Repeat([]byte("x"), 17<<20)}},
		{"header without a name", "22023", nixie.Message{Queue: "q", Headers: header("", "x")}},
		{"headers too large", "22023", nixie.Message{Queue: "q", Headers: header("ä", strings.Repeat("é", nixie.MaxHeaders/2))}},
		{"priority too low", "22023", nixie.Message{Queue: "q", Priority: nixie.MinPriority - 1}},
		{"priority too high", "22023", nixie.Message{Queue: "q", Priority: nixie.MaxPriority + 1}},
		{"delay below 0", "22023", nixie.Message{Queue: "q", Delay: -1500 * time.Millisecond}},
		{"delay just below 0", "22023", nixie.Message{Queue: "q", Delay: -time.Microsecond}},
		{"delay of minutes below 0", "22023", nixie.Message{Queue: "q", Delay: -61*time.Second - 1500*time.Microsecond}},
		{"delay below 0 by 1.5 ms", "22023", nixie.Message{Queue: "q", Delay: -1500 * time.Microsecond}},
		{"delay too long", "22023", nixie.Message{Queue: "q", Delay: nixie.MaxDelay + time.Second}},
		{"queue is closed", "55000", nixie.Message{Queue: "shut"}},
		{"queue is closed with a note", "55000", nixie.Message{Queue: "noted"}},
		{"key is taken", "23505", nixie.Message{Queue: "q", DedupeKey: `k"1`, OnConflict: nixie.FailOnConflict}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, want := s.Enqueue(ctx, tt.m)
			_, err := bySQL{c, schema}.Enqueue(ctx, tt.m)
			if text, code := told(err); want == nil || text != want.Error() || code != tt.code {
				t.Errorf("SQL %s %s\nGo: %v", code, text, want)
			}
			t.Logf("%-30s %s %.150s", tt.name, tt.code, want)
		})
	}
	for _, tt := range []struct {
		name string
		m    nixie.Message
	}{
		{"a slash", nixie.Message{Queue: "a/b c%"}},
		{"everything at its limit", nixie.Message{Queue: long[1:], Type: long[1:], Key: long[1:], Stream: long[1:], DedupeKey: long[1:],
			Priority: nixie.MaxPriority, Delay: nixie.MaxDelay, Headers: header("n", strings.Repeat("v", nixie.MaxHeaders-1)),
			Body: make([]byte, nixie.MaxBody)}},
	} {
		for _, to := range []nixie.Enqueuer{s, bySQL{c, schema}} {
			if _, err := to.Enqueue(ctx, tt.m); err != nil {
				t.Errorf("%s, %T: %v", tt.name, to, err)
			}
		}
	}
	sound(t, s)
}

// TestSQLEnqueueBadInput gives the function what the library cannot be given.
func TestSQLEnqueueBadInput(t *testing.T) {
	list, schema := crowd(t, 1)
	ctx, c := t.Context(), connected(t, server.URL)
	for _, tt := range []struct{ args, code, text string }{
		{"null, 'x'", "22023", "queue is empty: name the queue of the message"},
		{"null, null", "22023", "queue is empty: name the queue of the message"},
		{"'q', null", "22023", "body is null: give one, which may be empty"},
		{"'q', null::bytea", "22023", "body is null: give one, which may be empty"},
		{"'q', ''::text, null, null, null, null, null, null, null, null, null, null", "", ""},
		{"'q', '\\x00ff'::bytea, null, null, null, null, null, 'null'", "", ""},
		{"'q', 'x', headers => '5'", "22023", "headers are a number: give an object of texts, or an array of objects with name and value"},
		{"'q', 'x', headers => '{\"a\": 1}'", "22023", `header "a" has a value that is no text: give a string`},
		{"'q', 'x', headers => '{\"a\": null}'", "22023", `header "a" has a value that is no text: give a string`},
		{"'q', 'x', headers => '[{\"name\": \"a\"}]'", "22023", `header "a" has a value that is no text: give a string`},
		{"'q', 'x', headers => '[1]'", "22023", `header "": name and value have to be valid UTF-8, and the name not empty`},
		{"'q', 'x', headers => '[{\"name\": 1, \"value\": \"x\"}]'", "22023",
			`header "": name and value have to be valid UTF-8, and the name not empty`},
		{"'q', 'x', headers => '{}'", "", ""},
		{"'q', 'x', headers => '[]'", "", ""},
		{"'q', 'x', expires_in => '0'", "22023", "expires_in is 0s: give a positive duration, or null for never"},
		{"'q', 'x', expires_in => '-90 minutes'", "22023", "expires_in is -1h30m0s: give a positive duration, or null for never"},
		{"'q', 'x', expires_in => '1000 years'", "", ""},
		{"'q', 'x', delay => '1000 years'", "22023", "delay is 8766000h0m0s: give one from 0 to 87600h0m0s"},
		{"'q', 'x', delay => '1 month -30 days'", "", ""},
		{"'q', 'x', on_conflict => 'replace'", "22023", `on_conflict is "replace": give return or fail`},
		{"'q', E'\\xff'", "22021", "invalid byte sequence for encoding \"UTF8\": 0xff"},
		{"'q', 'x', no_such => 1", "42883", "function " + schema +
			".enqueue(unknown, unknown, no_such => integer) does not exist"},
	} {
		_, err := c.Exec(ctx, "select "+schema+".enqueue("+tt.args+")")
		if err == nil && tt.code == "" {
			continue
		}
		if text, code := told(err); code != tt.code || text != tt.text {
			t.Errorf("%s: %s %s", tt.args, code, text)
		}
	}
	sound(t, list[0])
	var bodies int
	must(t, c.QueryRow(ctx, "select count(*) from "+schema+".message").Scan(&bodies))
	if bodies != 6 {
		t.Errorf("%d messages were taken in", bodies)
	}
}

// TestSQLEnqueueHeaders keeps headers in their order, as the library writes them.
func TestSQLEnqueueHeaders(t *testing.T) {
	list, schema := crowd(t, 1)
	ctx, s, c := t.Context(), list[0], connected(t, server.URL)
	want := []nixie.Header{{Name: "z", Value: "<&>\u2028\u2029\x01\"\\\n"}, {Name: "a", Value: ""}, {Name: "z", Value: "ü"}}
	for _, to := range []nixie.Enqueuer{s, bySQL{c, schema}} {
		_, err := to.Enqueue(ctx, nixie.Message{Queue: "q", Headers: want})
		must(t, err)
	}
	_, err := c.Exec(ctx, "select "+schema+`.enqueue('q', 'ü', headers => '{"request-id": "r", "b": "2"}')`)
	must(t, err)
	rows, err := c.Query(ctx, "select headers from "+schema+".message order by pos")
	must(t, err)
	texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	must(t, err)
	if texts[0] != texts[1] || texts[2] != `[{"name":"b","value":"2"},{"name":"request-id","value":"r"}]` {
		t.Errorf("kept are %q", texts)
	}
	ds, err := s.Claim(ctx, "q", nixie.Want{Max: 9})
	must(t, err)
	if len(ds) != 3 || string(ds[2].Body) != "ü" || ds[2].Header("request-id") != "r" || ds[1].Headers[0] != want[0] {
		t.Errorf("delivered are %+v", ds)
	}
}

// TestSQLEnqueueRights lets a role without a right on any table enqueue, and no other.
func TestSQLEnqueueRights(t *testing.T) {
	list, schema := crowd(t, 1)
	ctx, s := t.Context(), list[0]
	c := connected(t, server.URL)
	for _, role := range []string{"nixie_web", "nixie_reader"} {
		_, err := c.Exec(ctx, "do $$ begin create role "+role+"; exception when duplicate_object then null; end $$")
		must(t, err)
	}
	m, err := postgres.NewSchema(server.URL, postgres.Options{Schema: schema})
	must(t, err)
	for range 2 { // it may be granted again
		_, err = m.Up(ctx, 0, store.Grants{Enqueue: "nixie_web"})
		must(t, err)
	}
	_, err = c.Exec(ctx, "grant usage on schema "+schema+" to nixie_reader; grant select on "+schema+".nixie_outbox to nixie_reader")
	must(t, err)
	for _, tt := range []struct{ role, statement, code string }{
		{"nixie_web", "select @.enqueue('new', 'x', delay => '1 s', stream => 's', dedupe_key => 'k')", ""},
		{"nixie_web", "select @.enqueue('new', 'x'::bytea)", ""},
		{"nixie_web", "select from @.message", "42501"},
		{"nixie_web", "select from @.nixie_outbox", "42501"},
		{"nixie_web", "insert into @.queue (name, age, lease) values ('mine', 1, 1)", "42501"},
		{"nixie_web", "select @.recompute_heads(array[1], array['s'], 0)", "42501"},
		{"nixie_web", "select nextval('@.position')", "42501"},
		{"nixie_web", "create or replace function @.quoted(text, integer) returns text language sql as 'select $1'", "42501"},
		// What a caller puts before the catalog does not run with the rights of the owner.
		{"nixie_web", `create function pg_temp.sha256(bytea) returns bytea language plpgsql as 'begin raise exception ''fooled''; end';
			create temp table queue (n int, name text); set search_path = pg_temp, @;
			select @.enqueue('new', 'x'); reset search_path; drop function pg_temp.sha256(bytea); drop table queue`, ""},
		{"nixie_reader", "select from @.nixie_outbox", ""},
		{"nixie_reader", "select @.enqueue('new', 'x')", "42501"},
		{"nixie_reader", "select @.enqueue('new', 'x'::bytea)", "42501"},
	} {
		_, err := c.Exec(ctx, "set role "+tt.role)
		must(t, err)
		text := strings.ReplaceAll(strings.ReplaceAll(tt.statement, "@.", schema+"."), "@", schema)
		err = c.PgConn().Exec(ctx, text).Close()
		if _, code := told(err); err == nil && tt.code != "" || err != nil && code != tt.code {
			t.Errorf("%s, %s: %v", tt.role, tt.statement, err)
		}
		_, err = c.Exec(ctx, "reset role")
		must(t, err)
	}
	owner := c.Config().User
	for role, want := range map[string]string{
		"no_such_role": `there is no role "no_such_role" to grant anything to: create it first`,
		owner:          fmt.Sprintf("role %q may do all that %[1]q may, who owns schema %s: grant to a role of its own", owner, schema),
	} {
		if _, err := m.Up(ctx, 0, store.Grants{Enqueue: role}); nixie.CodeOf(err) != nixie.CodeInvalid || err.Error() != want {
			t.Errorf("%s: told %v", role, err)
		}
	}
	script, err := m.Script(false, store.Grants{Enqueue: "nixie_web"})
	if err != nil || !strings.Contains(script, "grant usage on schema "+schema+` to "nixie_web";`) ||
		strings.Contains(script, `all tables in schema `+schema+` to "nixie_web"`) {
		t.Errorf("printed is %s, %v", script[max(0, len(script)-600):], err)
	}
	sound(t, s)
}

// TestSQLEnqueueIsolation adds to streams in transactions that see them as they were: what would be
// decided by that is refused, as by the library.
func TestSQLEnqueueIsolation(t *testing.T) {
	ctx := t.Context()
	s, schema := prepared(t, strict(), "1")
	must(t, store.Configure(ctx, s, "r", nixie.QueueSettings{Order: nixie.OrderRelaxed}, "ann", ""))
	for _, level := range []string{"repeatable read", "serializable"} {
		for name, m := range map[string]nixie.Message{
			"delay": {Queue: "q", Stream: "t", Delay: time.Second}, "key": {Queue: "q", Stream: "t", DedupeKey: "k"},
			"relaxed": {Queue: "r", Stream: "t"},
			"plain":   {Queue: "q", Stream: "t", Key: level}, "no stream": {Queue: "plain", DedupeKey: level},
		} {
			tx := begin(t)
			_, err := tx.Exec(ctx, "set transaction isolation level "+level)
			must(t, err)
			_, want := s.Tx(tx).Enqueue(ctx, m)
			if want == nil { // both would add it
				must(t, tx.Rollback(ctx))
				tx = begin(t)
				_, err := tx.Exec(ctx, "set transaction isolation level "+level)
				must(t, err)
			}
			_, err = bySQL{tx, schema}.Enqueue(ctx, m)
			if text, code := told(err); want == nil && err != nil || want != nil && (code != "25000" || text != want.Error()) {
				t.Errorf("%s, %s: SQL %s %s\nGo: %v", level, name, code, text, want)
			}
			if err == nil {
				must(t, tx.Commit(ctx))
			} else {
				must(t, tx.Rollback(ctx))
			}
		}
	}
	if got := drain(t, s); len(got) != 3 {
		t.Errorf("messages %v came", got)
	}
	sound(t, s)
}

// TestSQLEnqueueWakes notifies with the commit, once for each queue, if a process listens.
func TestSQLEnqueueWakes(t *testing.T) {
	list, schema := crowd(t, 1)
	ctx, s := t.Context(), list[0]
	must(t, store.Configure(ctx, s, "strict", strict(), "ann", ""))
	ear := connected(t, server.URL)
	_, err := ear.Exec(ctx, "listen "+schema)
	must(t, err)
	heard := func() (notes []string) { // what was told before this
		_, err := ear.Exec(ctx, "select pg_notify($1, 'end')", schema)
		must(t, err)
		for {
			note, err := ear.WaitForNotification(ctx)
			must(t, err)
			if note.Payload == "end" {
				return notes
			}
			notes = append(notes, note.Payload)
		}
	}
	expect := func(when string, want ...string) {
		t.Helper()
		if got := heard(); strings.Join(got, ",") != strings.Join(want, ",") {
			t.Errorf("%s: heard %q, want %q", when, got, want)
		}
	}
	enqueue := func(tx pgx.Tx, args string) {
		t.Helper()
		_, err := tx.Exec(ctx, "select "+schema+".enqueue("+args+")")
		must(t, err)
	}
	tx := begin(t)
	enqueue(tx, "'q', 'x'")
	must(t, tx.Commit(ctx))
	expect("none listens")

	_, err = ear.Exec(ctx, "select pg_advisory_lock_shared(hashtext('nixie listen ' || $1), 0)", schema)
	must(t, err)
	tx = begin(t)
	for range 3 {
		enqueue(tx, "'q', 'x'")
		enqueue(tx, "'strict', 'x', stream => 's'")
		enqueue(tx, "'strict', 'x', stream => 't', priority => 1")
	}
	enqueue(tx, "'later', 'x', delay => '1 hour'")
	enqueue(tx, "'silent', 'x', wake => false")
	enqueue(tx, "'soon', 'x', delay => '1 second'")
	expect("before the commit")
	must(t, tx.Commit(ctx))
	expect("after the commit", "sql q", "sql strict", "sql soon")
	tx = begin(t)
	enqueue(tx, "'q', 'x'")
	must(t, tx.Rollback(ctx))
	expect("rolled back")
	tx = begin(t)
	enqueue(tx, "'late', 'x', delay => '1 hour', dedupe_key => 'k'")
	enqueue(tx, "'late', 'x', dedupe_key => 'k'")
	must(t, tx.Commit(ctx))
	expect("a duplicate")

	// A transaction that stays open keeps no process from listening, and no other from knowing that
	// none does.
	_, err = ear.Exec(ctx, "select pg_advisory_unlock_all()")
	must(t, err)
	tx = begin(t)
	enqueue(tx, "'q', 'x'")
	var free bool
	must(t, ear.QueryRow(ctx, "select pg_try_advisory_lock(hashtext('nixie listen ' || $1), 0)", schema).Scan(&free))
	if !free {
		t.Error("an open transaction holds the lock of the listeners")
	}
	must(t, tx.Commit(ctx))
	sound(t, s)
}

// TestSQLEnqueueIsFound lets a process that waits hear of a message, and find one that it is not
// told of.
func TestSQLEnqueueIsFound(t *testing.T) {
	list, schema := crowd(t, 1)
	ctx, s, c := t.Context(), list[0], connected(t, server.URL)
	stop := s.Features().Watch("q")
	defer stop()
	listening(t, server.URL, schema)
	for _, wake := range []bool{true, false} {
		ch := s.Features().Wake("q")
		_, err := c.Exec(ctx, "select "+schema+".enqueue('q', 'x', wake => $1)", wake)
		must(t, err)
		woken(t, ch)
		if ds, err := s.Claim(ctx, "q", nixie.Want{Max: 9}); err != nil || len(ds) != 1 {
			t.Errorf("wake %t: claimed %v, %v", wake, ds, err)
		}
	}
}

// TestSQLEnqueueHeads compares the function that recomputes heads with the library's statement. A
// change of the statement needs a migration with the function.
func TestSQLEnqueueHeads(t *testing.T) {
	schema := newSchema(t)
	grant(t, schema)
	defer dropSchema(t, schema)
	var body string
	must(t, connected(t, server.URL).QueryRow(t.Context(), "select prosrc from pg_proc where oid = ($1 || '.recompute_heads')::regproc",
		schema).Scan(&body))
	all, _, err := postgres.Statements(schema)
	must(t, err)
	want := "begin return query " + all["recompute_heads"] + "; end"
	if got := strings.Join(strings.Fields(body), " "); got != strings.Join(strings.Fields(want), " ") {
		t.Errorf("the function is\n%s\nthe statement\n%s", got, want)
	}
}

// addLate begins to add a message of stream s by SQL in a transaction. It waits for another one, or
// is done, when this returns.
func addLate(t *testing.T, schema, key string) (tx pgx.Tx, done chan error) {
	t.Helper()
	tx, done = begin(t), make(chan error, 1)
	pid := tx.Conn().PgConn().PID()
	go func() {
		_, err := bySQL{tx, schema}.Enqueue(t.Context(), nixie.Message{Queue: "q", Stream: "s", Key: key})
		done <- err
	}()
	until(t, fmt.Sprintf(`select exists (select from pg_stat_activity where pid = %d and query like '%%enqueue%%'
		and (wait_event_type = 'Lock' or state <> 'active'))`, pid))
	return tx, done
}

// TestSQLEnqueueWaitsForAnOrder adds to a queue while an operator gives it an order: the message is
// in a stream, though the call began before.
func TestSQLEnqueueWaitsForAnOrder(t *testing.T) {
	ctx := t.Context()
	s, schema := prepared(t, nixie.QueueSettings{})
	tx := begin(t)
	_, err := tx.Exec(ctx, "select pg_advisory_xact_lock(hashtext($1), n) from "+schema+".queue", schema)
	must(t, err)
	late, done := addLate(t, schema, "1")
	_, err = tx.Exec(ctx, "update "+schema+`.queue set strict = true, settings = '{"paused": false, "order": "strict"}'`)
	must(t, err)
	must(t, tx.Commit(ctx))
	must(t, <-done)
	must(t, late.Commit(ctx))
	var onPath bool
	must(t, connected(t, server.URL).QueryRow(ctx, "select ordered_stream is not null from "+schema+".message").Scan(&onPath))
	if !onPath {
		t.Error("the message is in no stream")
	}
	if got := drain(t, s); len(got) != 1 {
		t.Errorf("messages %v came", got)
	}
	sound(t, s)
}

// TestSQLEnqueueWaitsForAStream adds to a stream to which another transaction adds: the second one
// waits, and what it adds comes after all that the first added.
func TestSQLEnqueueWaitsForAStream(t *testing.T) {
	ctx := t.Context()
	s, schema := prepared(t, strict())
	tx := begin(t)
	add(t, bySQL{tx, schema}, "1")
	late, done := addLate(t, schema, "3")
	add(t, bySQL{tx, schema}, "2")
	must(t, tx.Commit(ctx))
	must(t, <-done)
	must(t, late.Commit(ctx))
	for _, want := range []string{"1", "2", "3"} {
		d := one(t, s)
		if d.Key != want {
			t.Errorf("message %s came, want %s", d.Key, want)
		}
		must(t, completed(s, d))
	}
	sound(t, s)
}
