package postgres_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
	"github.com/nixie-go/nixie/store/storetest"
	"github.com/nixie-go/nixie/worker"
)

// poolOf makes a pool as another program does, which is closed in the end.
func poolOf(t testing.TB, url string, change ...func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	must(t, err)
	for _, c := range change {
		c(config)
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	must(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// overPool opens a store over a pool, closed before it, in a schema that is there.
func overPool(t *testing.T, pool *pgxpool.Pool, opts postgres.Options) *postgres.Store {
	t.Helper()
	s, err := postgres.OpenPool(t.Context(), pool, opts)
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

// migrated names a schema for one test that nixie migrate up has made.
func migrated(t *testing.T) string {
	t.Helper()
	schema := lend(t)
	grant(t, schema)
	return schema
}

// harnessOverPools opens each store over a pool of its own, of a program that has chosen everything
// differently, with transactions of that pool.
func harnessOverPools() storetest.Harness {
	var pools sync.Map
	h := harnessOf(func(t testing.TB, url string, opts postgres.Options) (*postgres.Store, error) {
		pool := poolOf(t, with(url, "pool_max_conns=2&default_transaction_isolation=serializable&search_path=pg_temp&work_mem=64kB&"+
			"bytea_output=escape&datestyle=German&timezone=Asia/Kathmandu&statement_timeout=10s&lock_timeout=1"))
		s, err := postgres.OpenPool(context.Background(), pool, opts)
		pools.Store(s, pool)
		return s, err
	})
	h.Begin = func(ctx context.Context, st store.Store) (storetest.OpenTx, error) {
		pool, _ := pools.Load(st.(granted).Store)
		tx, err := pool.(*pgxpool.Pool).BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
		if err != nil {
			return storetest.OpenTx{}, err
		}
		end := func(how func(context.Context) error) func() error {
			return func() error { return how(context.Background()) }
		}
		return storetest.OpenTx{Tx: st.(granted).Tx(tx), Commit: end(tx.Commit), Rollback: end(tx.Rollback)}, nil
	}
	return h
}

// TestStoreOverAPool runs the suite over pools of callers. A quick run has the part that is about
// transactions of callers.
func TestStoreOverAPool(t *testing.T) {
	proof.Run(t, "suite-postgres-pool", func(t *testing.T, _ uint64) int {
		if proof.Current() < proof.Long {
			storetest.RunTransactions(t, harnessOverPools())
		} else {
			storetest.Run(t, harnessOverPools())
		}
		return 1
	})
}

// TestHandlersHoldThePool lets eight handlers take connections of a pool of two, and keep them for
// two leases: no lease is lost, because renewals have a connection of their own.
func TestHandlersHoldThePool(t *testing.T) {
	const handlers, lease = 8, 1500 * time.Millisecond
	pool := poolOf(t, with(server.URL, "pool_max_conns=2"))
	s := overPool(t, pool, postgres.Options{Schema: migrated(t)})
	for i := range handlers {
		_, err := s.Enqueue(t.Context(), nixie.Message{Queue: "q", Key: fmt.Sprint(i)})
		must(t, err)
	}
	var runs, lost atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	w, err := worker.New(worker.Config{
		Source: store.NewSource(s, "q"), Concurrency: handlers, Lease: lease, Until: worker.Until{Idle: true},
		Observer: &nixie.Observer{Lost: func(*nixie.Delivery) { lost.Add(1); stop() }},
		Handler: nixie.HandlerFunc(func(ctx context.Context, _ *nixie.Delivery) error {
			runs.Add(1)
			over := time.After(2 * lease)
			c, err := pool.Acquire(ctx)
			if err != nil {
				return err
			}
			defer c.Release()
			select {
			case <-over:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}),
	})
	must(t, err)
	must(t, w.Run(ctx))
	if runs.Load() != handlers || lost.Load() != 0 {
		t.Errorf("%d runs of %d messages, %d leases lost", runs.Load(), handlers, lost.Load())
	}
	sound(t, s)
}

// TestAPoolOfOne does everything by one connection of the caller, also completing inside the only
// transaction that it can have, and leaves it as it was.
func TestAPoolOfOne(t *testing.T) {
	schema := migrated(t)
	pool := poolOf(t, with(server.URL, "pool_max_conns=1"))
	s := overPool(t, pool, postgres.Options{Schema: schema, AnswerWait: 5 * time.Second})
	settings := func() (all string) {
		must(t, pool.QueryRow(t.Context(), "select string_agg(name || setting, ' ' order by name) from pg_settings").Scan(&all))
		return all
	}
	before := settings()
	_, err := pool.Exec(t.Context(), "create temporary table done (key text)")
	must(t, err)
	for i := range 10 {
		_, err := s.Enqueue(t.Context(), nixie.Message{Queue: "q", Key: fmt.Sprint(i)})
		must(t, err)
	}
	w, err := worker.New(worker.Config{
		Source: store.NewSource(s, "q"), Concurrency: 2, Until: worker.Until{Idle: true},
		Handler: nixie.HandlerFunc(func(ctx context.Context, d *nixie.Delivery) error {
			if d.Queue == "q" && d.Key == "3" {
				return nixie.Permanent(fmt.Errorf("three"))
			}
			return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, "insert into done values ($1)", d.Key); err != nil {
					return err
				}
				if _, err := s.Tx(tx).Enqueue(ctx, nixie.Message{Queue: "next", Key: d.Key}); err != nil {
					return err
				}
				return s.Tx(tx).Complete(ctx, d)
			})
		}),
	})
	must(t, err)
	must(t, w.Run(t.Context()))
	var done int
	must(t, pool.QueryRow(t.Context(), "select count(distinct key) from done").Scan(&done))
	letters, _, err := s.Letters(t.Context(), nixie.Filter{}, store.Page{})
	must(t, err)
	next, err := s.Claim(t.Context(), "next", nixie.Want{Max: 20})
	must(t, err)
	if done != 9 || len(letters) != 1 || len(next) != 9 {
		t.Errorf("%d done, %d dead, %d enqueued", done, len(letters), len(next))
	}
	sound(t, s)
	must(t, s.Close())
	if after := settings(); after != before {
		t.Errorf("settings of the caller's session were\n%s\nand are\n%s", before, after)
	}
}

// TestPoolHasTheLastWord gives a pool whose hooks say where the server is and who asks: calls,
// renewals and the listener follow them, and the caller's function for notifications gets none of
// ours. There are two connections more than the pool has.
func TestPoolHasTheLastWord(t *testing.T) {
	schema := migrated(t)
	url := server.URL
	conn, err := pgx.Connect(t.Context(), url)
	must(t, err)
	for others := 1; others > 0; { // a test that had the schema before may still be leaving
		must(t, conn.QueryRow(t.Context(), "select count(*) from pg_stat_activity where application_name = $1",
			"nixie listen "+schema).Scan(&others))
	}
	must(t, conn.Close(t.Context()))
	right, err := pgx.ParseConfig(url)
	must(t, err)
	const name = "a program with a pool"
	var stray, asked atomic.Int64
	pool := poolOf(t, "postgres://wrong:no@127.0.0.1:1/none?pool_max_conns=2", func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams = nil
		c.ConnConfig.OnNotification = func(*pgconn.PgConn, *pgconn.Notification) { stray.Add(1) }
		c.ConnConfig.Fallbacks = nil
		c.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
			c.Host, c.Port, c.User, c.Database, c.TLSConfig = right.Host, right.Port, right.User, right.Database, nil
			c.RuntimeParams = map[string]string{"application_name": name, "default_transaction_isolation": "serializable",
				"statement_timeout": "9s"}
			asked.Add(1)
			return nil
		}
		c.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
			_, err := c.Exec(ctx, "set role "+runner)
			return err
		}
	})
	s := overPool(t, pool, postgres.Options{Schema: schema})
	if want := open(t, url, postgres.Options{Schema: schema}).Name(); s.Name() != want {
		t.Errorf("named %s, want %s", s.Name(), want)
	}
	_ = s.Features().Wake("q")
	listening(t, url, schema)
	rings(t, open(t, url, postgres.Options{Schema: schema}), s)
	atOnce(8, func(int) {
		_, err := s.Enqueue(t.Context(), nixie.Message{Queue: "q"})
		if err != nil {
			t.Error(err)
		}
	})
	ds, err := s.Claim(t.Context(), "q", nixie.Want{Max: 3})
	must(t, err)
	for _, err := range s.Extend(t.Context(), ds, time.Minute) {
		must(t, err)
	}
	// Only calls are ours in every respect.
	for name, want := range map[string]string{"transaction_isolation": "read committed", "statement_timeout": "5min", "jit": "off"} {
		if got, err := s.SettingOfCalls(t.Context(), name); err != nil || got != want {
			t.Errorf("%s is %s in a call, want %s (%v)", name, got, want, err)
		}
	}
	var by, listeners int
	must(t, pool.QueryRow(t.Context(), `select count(*) filter (where application_name = $1), count(*) filter (where application_name = $2)
		from pg_stat_activity`, name, "nixie listen "+schema).Scan(&by, &listeners))
	if by > 3 || listeners != 1 || stray.Load() != 0 {
		t.Errorf("%d connections of a pool of 2, %d listen; the caller heard %d notifications", by, listeners, stray.Load())
	}
	if asked.Load() < int64(by+listeners) {
		t.Errorf("the hook was asked %d times for %d connections", asked.Load(), by+listeners)
	}
}

// TestPoolsThatCannotServe is the table of what is refused. What is refused leaves the pool open
// and no connection behind.
func TestPoolsThatCannotServe(t *testing.T) {
	schema := migrated(t)
	as := func(role, attributes string) string {
		run(t, server.URL, "do $$ begin create role "+role+" "+attributes+"; exception when duplicate_object then null; end $$; grant "+
			"usage on schema "+schema+" to nixie_reads; grant select on all tables in schema "+schema+" to nixie_reads")
		return with(server.URL, "user="+role)
	}
	reads := as("nixie_reads", "login")
	up := func(m *postgres.Schema, version int) {
		_, err := m.Up(t.Context(), version, store.Grants{})
		must(t, err)
	}
	none, older, newer, foreign := freshSchema(t), freshSchema(t), freshSchema(t), freshSchema(t)
	m, err := postgres.NewSchema(server.URL, postgres.Options{Schema: older})
	must(t, err)
	up(m, ours(t)-1)
	m, err = postgres.SchemaOf(server.URL, postgres.Options{Schema: newer}, growing(t))
	must(t, err)
	up(m, 0)
	run(t, server.URL, "create schema "+foreign+"; create table "+foreign+".migration (id int)")
	type held = func(t *testing.T, pool *pgxpool.Pool)
	for _, c := range []struct {
		name, url, schema string
		before            held
		code              nixie.Code
		want              []string
	}{
		{"no pool", "", schema, nil, nixie.CodeInvalid, []string{"pool is missing: give one that is open"}},
		{"a closed pool", server.URL, schema, func(_ *testing.T, p *pgxpool.Pool) { p.Close() }, nixie.CodeUnavailable,
			[]string{"is closed: close the store before its pool"}},
		{"a schema with a name that is none", server.URL, "Not This", nil, nixie.CodeInvalid,
			[]string{`schema "Not This": use small letters`}},
		{"no schema", server.URL, none, nil, nixie.CodeNotFound, []string{"has no schema " + none + ": run nixie migrate up --store '"}},
		{"no schema, and a role that may not make it", reads, none, nil, nixie.CodeNotFound,
			[]string{"run nixie migrate up --grant nixie_reads --store 'postgres://nixie@"}},
		{"an older schema", server.URL, older, nil, nixie.CodeConflict,
			[]string{"has schema version", "this program needs", "run nixie migrate up --store '"}},
		{"a newer schema", server.URL, newer, nil, nixie.CodeInvalid, []string{"it has schema version", "ours is"}},
		{"a schema of another program", server.URL, foreign, nil, nixie.CodeInvalid, []string{"is another program's: name another one"}},
		{"a role without rights", as("nixie_stranger", "login"), schema, nil, nixie.CodeDenied,
			[]string{`role "nixie_stranger" may not do that: as the owner of the schema, run nixie migrate up --grant nixie_stranger`}},
		{"a role that may only read", reads, schema, nil, nixie.CodeDenied,
			[]string{`role "nixie_reads" may only read it: run nixie migrate up --grant nixie_reads`}},
		{"a read-only pool", with(server.URL, "default_transaction_read_only=on"), schema, nil, nixie.CodeDenied,
			[]string{"is read-only: give one of the primary server"}},
		{"a role with one connection", as("nixie_lonely", "login connection limit 1 in role "+runner), schema, nil, nixie.CodeUnavailable,
			[]string{"besides the pool, it needs one, and one to listen: lower MaxConns of the pool"}},
		{"a pool in use", with(server.URL, "pool_max_conns=1"), schema, func(t *testing.T, p *pgxpool.Pool) {
			c, err := p.Acquire(t.Context())
			must(t, err)
			t.Cleanup(c.Release)
		}, nixie.CodeUnavailable, []string{"all 1 connections of the pool are in use: raise its MaxConns"}},
		{"no server", "postgres://nixie@127.0.0.1:1/none", schema, nil, nixie.CodeUnavailable,
			[]string{"cannot be reached: check host and port"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var pool *pgxpool.Pool
			if c.url != "" {
				pool = poolOf(t, c.url)
			}
			if c.before != nil {
				c.before(t, pool)
			}
			s, err := postgres.OpenPool(t.Context(), pool, postgres.Options{Schema: c.schema, AnswerWait: 3 * time.Second})
			if err == nil {
				_ = s.Close()
				t.Fatal("it was taken")
			}
			if code := nixie.CodeOf(err); code != c.code {
				t.Errorf("code %s, want %s", code, c.code)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("told %v\nwant %s", err, want)
				}
			}
		})
	}
}

// TestTransactionsOfAnotherDatabase begins transactions in databases that have a schema of that
// name or none: they are refused, and can go on.
func TestTransactionsOfAnotherDatabase(t *testing.T) {
	schema := migrated(t)
	s := overPool(t, poolOf(t, server.URL), postgres.Options{Schema: schema})
	byURL := open(t, server.URL, postgres.Options{Schema: schema})
	other := "other_" + schema
	run(t, server.URL, "create database "+other)
	t.Cleanup(func() { run(t, server.URL, "drop database "+other) })
	url := strings.Replace(server.URL, "/postgres?", "/"+other+"?", 1)
	for _, want := range []string{"is of a database that has no schema " + schema, "is of another database, " + other} {
		pool := poolOf(t, url)
		for _, st := range []*postgres.Store{s, byURL} {
			refuses(t, pool, st, want)
		}
		pool.Close()
		m, err := postgres.NewSchema(url, postgres.Options{Schema: schema})
		must(t, err)
		_, err = m.Up(t.Context(), 0, store.Grants{})
		must(t, err)
	}
	// A server that has a database of the same name, with a schema of the same name.
	was := "x"
	execute(t, "update "+schema+".meta set value = 'x' || value where name = 'cluster'")
	refuses(t, poolOf(t, server.URL), s, "is of another database")
	execute(t, "update "+schema+".meta set value = substr(value, length($1) + 1) where name = 'cluster'", was)
	tx := begin(t)
	_, err := s.Tx(tx).Enqueue(t.Context(), nixie.Message{Queue: "q"})
	must(t, err)
	must(t, tx.Rollback(t.Context()))
}

// refuses checks that a store takes in nothing by transactions of a pool, which stay usable.
func refuses(t *testing.T, pool *pgxpool.Pool, s *postgres.Store, want string) {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	must(t, err)
	if _, err = s.Tx(tx).Enqueue(t.Context(), nixie.Message{Queue: "q"}); nixie.CodeOf(err) != nixie.CodeInvalid ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("told %v, want %s", err, want)
	}
	_, alive := tx.Exec(t.Context(), "select 1")
	must(t, tx.Rollback(t.Context()))
	// The driver prepares statements before any is run: without the tables there is no savepoint.
	if alive != nil && !strings.Contains(want, "no schema") {
		t.Error(alive)
	}
	var there int
	if err := pool.QueryRow(t.Context(), "select count(*) from "+s.Schema()+".message").Scan(&there); err == nil && there != 0 {
		t.Errorf("%d messages are there", there)
	}
	db, err := sql.Open("pgx", pool.Config().ConnString())
	must(t, err)
	defer func() { must(t, db.Close()) }()
	stx, err := db.BeginTx(t.Context(), nil)
	must(t, err)
	if _, err = s.SQLTx(stx).Once(t.Context(), "scope", "key"); nixie.CodeOf(err) != nixie.CodeInvalid ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("told %v, want %s", err, want)
	}
	must(t, stx.Commit())
}

// TestAProgramMigratesMeanwhile lets another program write its tables and change them all the time,
// by the same pool: its rows are as it wrote them, and each message is worked on once.
func TestAProgramMigratesMeanwhile(t *testing.T) {
	const messages = 60
	schema := migrated(t)
	app := freshSchema(t)
	run(t, server.URL, "create schema "+app+"; create table "+app+".invoice (number int primary key, text text)")
	pool := poolOf(t, with(server.URL, "pool_max_conns=3&search_path="+app))
	s := overPool(t, pool, postgres.Options{Schema: schema})
	ctx, stop := context.WithCancel(t.Context())
	var program sync.WaitGroup
	var written, steps int
	program.Go(func() {
		for ; ctx.Err() == nil; steps++ {
			column := fmt.Sprintf("c%d", steps)
			for _, migration := range []string{
				"alter table invoice add column " + column + " int default 7",
				"create index " + column + "_index on invoice (" + column + ")",
				"alter table invoice drop column " + column,
				"analyze invoice",
			} {
				if _, err := pool.Exec(t.Context(), migration); err != nil {
					t.Error(err)
				}
			}
		}
	})
	program.Go(func() {
		for ; ctx.Err() == nil; written++ {
			if _, err := pool.Exec(t.Context(), "insert into invoice (number, text) values ($1, $2)", -written-1, "his"); err != nil {
				t.Error(err)
			}
		}
	})
	for i := range messages {
		must(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			_, err := s.Tx(tx).Enqueue(t.Context(), nixie.Message{Queue: "q", Key: fmt.Sprint(i), Stream: fmt.Sprint(i % 5)})
			return err
		}))
	}
	w, err := worker.New(worker.Config{
		Source: store.NewSource(s, "q"), Concurrency: 4, Until: worker.Until{Idle: true},
		Handler: nixie.HandlerFunc(func(ctx context.Context, d *nixie.Delivery) error {
			return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, "insert into invoice (number, text) values ($1::text::int, 'ours')", d.Key); err != nil {
					return err
				}
				return s.Tx(tx).Complete(ctx, d)
			})
		}),
	})
	must(t, err)
	must(t, w.Run(t.Context()))
	stop()
	program.Wait()
	var his, done, columns int
	must(t, pool.QueryRow(t.Context(), `select count(*) filter (where number < 0 and text = 'his'), count(*) filter (where number >= 0),
		(select count(*) from pg_attribute where attrelid = 'invoice'::regclass and attnum > 0 and not attisdropped)
		from invoice`).Scan(&his, &done, &columns))
	if his != written || done != messages || columns != 2 || steps == 0 {
		t.Errorf("%d of %d rows of the program, %d messages, %d columns after %d migrations", his, written, done, columns, steps)
	}
	t.Logf("%d rows and %d migrations of the program", written, steps)
	m, err := postgres.NewSchema(server.URL, postgres.Options{Schema: schema})
	must(t, err)
	valid(t, m)
	sound(t, s)
}

// counted counts the round trips of a pool, and notes the statements in them.
type counted struct {
	mu    sync.Mutex
	trips int
	list  []string
}

func (c *counted) count(list ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trips++
	c.list = append(c.list, list...)
}

func (c *counted) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	c.count(d.SQL)
	return ctx
}

func (c *counted) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (c *counted) TraceBatchStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceBatchStartData) context.Context {
	var list []string
	for _, q := range d.Batch.QueuedQueries {
		list = append(list, q.SQL)
	}
	c.count(list...)
	return ctx
}

func (c *counted) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (c *counted) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

// TestWhatAPoolCosts counts what the server is asked: over a pool as over connections of ours, with
// one statement more in a transaction.
func TestWhatAPoolCosts(t *testing.T) {
	schema := migrated(t)
	asked := map[bool]int{}
	var c counted
	for _, over := range []bool{false, true} {
		w := newWire(t)
		opts := postgres.Options{Schema: schema, NoListen: true}
		var s *postgres.Store
		if over {
			traced := func(config *pgxpool.Config) { config.ConnConfig.Tracer = &c }
			s = overPool(t, poolOf(t, w.url, traced), opts)
		} else {
			s = open(t, w.url, opts)
		}
		work := func() {
			_, err := s.Enqueue(t.Context(), nixie.Message{Queue: "q"}, nixie.Message{Queue: "q", Priority: 1})
			must(t, err)
			ds, err := s.Claim(t.Context(), "q", nixie.Want{Max: 2})
			must(t, err)
			for _, err := range s.Extend(t.Context(), ds, time.Minute) {
				must(t, err)
			}
			for _, d := range ds {
				must(t, s.Settle(t.Context(), []nixie.Settlement{{Delivery: d, Verb: nixie.Complete}})[0])
			}
			_, _, err = s.Messages(t.Context(), nixie.Filter{}, store.Page{})
			must(t, err)
		}
		for range 3 {
			work() // each statement is prepared
		}
		const far = 1 << 30
		w.cutAt(far, false)
		c.mu.Lock()
		c.trips, c.list = 0, nil
		c.mu.Unlock()
		for range 10 {
			work()
		}
		asked[over] = w.questions(far)
		w.cutAt(-1, false)
	}
	if asked[true] != asked[false] || c.trips == 0 {
		t.Errorf("%d round trips over a pool, %d over connections of ours", asked[true], asked[false])
	}
	settings := 0
	for _, q := range c.list {
		if strings.Contains(q, "set_config('lock_timeout'") {
			settings++
		}
	}
	commits := len(slices.DeleteFunc(slices.Clone(c.list), func(q string) bool { return q != "commit" }))
	t.Logf("%d round trips, %d statements, %d transactions, %d settings", asked[true], len(c.list), commits, settings)
	if settings < commits || settings > c.trips {
		t.Errorf("%d times settings in %d round trips with %d commits", settings, c.trips, commits)
	}
}
