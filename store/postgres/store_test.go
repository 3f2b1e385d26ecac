package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/nixie-go/nixie/internal/proof/child"
	"github.com/nixie-go/nixie/internal/proof/testservers"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
	"github.com/nixie-go/nixie/store/storetest"
)

// server is the PostgreSQL of these tests; each has a schema of its own there.
var server testservers.Postgres

func TestMain(m *testing.M) {
	if args, is := child.Main(); is {
		os.Exit(child.Code(play(args[0], args[1], args[2])))
	}
	os.Exit(testservers.WithPostgres(m.Run, &server))
}

// schemas are those that were made, for others to use again: making one costs more
// than most tests.
var schemas struct {
	sync.Mutex
	made int
	free []string
}

// newSchema names an empty schema.
func newSchema(t testing.TB) string {
	t.Helper()
	server.Need(t)
	schemas.Lock()
	defer schemas.Unlock()
	if n := len(schemas.free); n > 0 {
		schema := schemas.free[n-1]
		schemas.free = schemas.free[:n-1]
		return schema
	}
	return unusedSchema()
}

// unusedSchema returns the name of a schema that no test had before: it has no dead rows of others.
// schemas is locked.
func unusedSchema() string {
	schemas.made++
	return fmt.Sprintf("t%d_%d", os.Getpid(), schemas.made)
}

// dropSchema empties a schema that is not used any more, for others.
func dropSchema(t testing.TB, schema string) {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), server.URL)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = conn.Close(context.Background()) }()
	const empty = `do $do$ declare t text; begin
		for t in select format('%I.%I', schemaname, tablename) from pg_tables where schemaname = 'SCHEMA' and tablename <> 'migration'
			order by tablename = 'death' loop execute 'delete from ' || t; end loop;
		for t in select format('%I.%I', schemaname, sequencename) from pg_sequences where schemaname = 'SCHEMA' loop 
			execute 'alter sequence ' || t || ' restart'; end loop;
	end $do$`
	if _, err := conn.Exec(context.Background(), strings.ReplaceAll(empty, "SCHEMA", schema)); err != nil {
		t.Error(err)
		return
	}
	schemas.Lock()
	defer schemas.Unlock()
	schemas.free = append(schemas.free, schema)
}

// granted is a store of a role that has what nixie migrate up --grant gives, and
// no more. The whole suite runs as that role.
type granted struct {
	*postgres.Store
	owner func() store.Store
}

// Prune is done by the owner of the schema: who runs a store cannot delete what the
// audit says.
func (g granted) Prune(ctx context.Context, p store.Pruning) (store.Pruned, error) {
	return g.owner().Prune(ctx, p)
}

// runner is the role that runs stores.
const runner = "nixie_runner"

// asRunner makes a URL one of that role.
func asRunner(url string) string {
	mark := "?"
	if strings.Contains(url, mark) {
		mark = "&"
	}
	return url + mark + "role=" + runner
}

// grant makes a schema that the runner may use.
var grant = func() func(t testing.TB, schema string) {
	var once sync.Once
	var done sync.Map
	return func(t testing.TB, schema string) {
		t.Helper()
		once.Do(func() {
			run(t, server.URL, "do $$ begin create role "+runner+"; exception when duplicate_object then null; end $$")
		})
		if _, had := done.LoadOrStore(schema, true); had {
			return
		}
		m, err := postgres.NewSchema(server.URL, postgres.Options{Schema: schema})
		must(t, err)
		_, err = m.Up(context.Background(), 0, store.Grants{Run: runner})
		must(t, err)
	}
}()

var harness = harnessWith(func(url string) string { return url })

// harnessWith opens stores by URLs that are changed first.
func harnessWith(change func(url string) string) storetest.Harness {
	h := harnessOf(func(_ testing.TB, url string, opts postgres.Options) (*postgres.Store, error) {
		return postgres.Open(context.Background(), change(url), opts)
	})
	h.Begin = func(ctx context.Context, st store.Store) (storetest.OpenTx, error) {
		conn, err := pgx.Connect(ctx, change(asRunner(server.URL)))
		if err != nil {
			return storetest.OpenTx{}, err
		}
		tx, err := conn.Begin(ctx)
		end := func(how func(context.Context) error) func() error {
			return func() error { return errors.Join(how(context.Background()), conn.Close(context.Background())) }
		}
		return storetest.OpenTx{Tx: st.(granted).Tx(tx), Commit: end(tx.Commit), Rollback: end(tx.Rollback)}, err
	}
	return h
}

// harnessOf opens stores by a function.
func harnessOf(open func(t testing.TB, url string, opts postgres.Options) (*postgres.Store, error)) storetest.Harness {
	return storetest.Harness{Open: func(t testing.TB, clock *storetest.Clock) storetest.Shared {
		schema := newSchema(t)
		grant(t, schema)
		var joined []*postgres.Store
		join := func(url, owner string) *postgres.Store {
			s, err := open(t, url, postgres.Options{Schema: schema, Clock: clock.Now, Owner: owner})
			if err != nil {
				t.Fatal(err)
			}
			joined = append(joined, s)
			return s
		}
		owner := sync.OnceValue(func() store.Store { return join(server.URL, "owner of the schema") })
		return storetest.Shared{
			Join: func(name string) store.Store {
				return granted{join(asRunner(server.URL), name), owner}
			},
			Crash: func(s store.Store) {
				if err := s.(granted).Crash(); err != nil {
					t.Error(err)
				}
			},
			Close: func() {
				for _, s := range joined {
					if err := s.Close(); err != nil {
						t.Error(err)
					}
				}
				dropSchema(t, schema)
			},
		}
	}}
}

func TestStore(t *testing.T) { storetest.Run(t, harness) }

func BenchmarkStore(b *testing.B) { storetest.Bench(b, harness) }

// TestStoreInSQLTransactions runs the clauses on transactions with those of
// package database/sql.
func TestStoreInSQLTransactions(t *testing.T) {
	server.Need(t)
	db, err := sql.Open("pgx", asRunner(server.URL))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	h := harness
	h.Begin = func(ctx context.Context, st store.Store) (storetest.OpenTx, error) {
		tx, err := db.BeginTx(ctx, nil)
		return storetest.OpenTx{Tx: st.(granted).SQLTx(tx), Commit: tx.Commit, Rollback: tx.Rollback}, err
	}
	storetest.RunTransactions(t, h)
}
