package histories_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/proof/histories"
	"github.com/nixie-go/nixie/internal/proof/testservers"
	"github.com/nixie-go/nixie/store/postgres"
)

// server is the PostgreSQL of these tests; each history has a schema there.
var server testservers.Postgres

func TestPostgres(t *testing.T) {
	server.Need(t)
	histories.Run(t, "histories-postgres", onPostgres(nil))
}

var schemas atomic.Int64

// onPostgres opens one schema several times in this process, and by others.
func onPostgres(breaks defect) histories.Harness {
	return histories.Harness{Told: true, Open: func(t testing.TB, clock *histories.Clock) histories.Shared {
		dir, err := os.MkdirTemp(fastFolder(), "nixie-histories-") //nolint:usetesting // it lies on another file system
		must(t, err)
		clockPath := filepath.Join(dir, "clock")
		file, err := os.Create(clockPath)
		must(t, err)
		must(t, clock.Tell(func(now time.Time) error {
			_, err := file.WriteAt(binary.BigEndian.AppendUint64(nil, uint64(now.UnixNano())), 0)
			return err
		}))
		exe, err := os.Executable()
		must(t, err)
		schema := fmt.Sprintf("h%d_%d", os.Getpid(), schemas.Add(1))
		keeper, err := openPostgres(schema, "keeper", clock.Now)
		must(t, err)
		pool, err := pgxpool.New(t.Context(), server.URL)
		must(t, err)
		_, err = pool.Exec(t.Context(), "create table "+schema+".app_effect (number integer, message uuid, generation integer)")
		must(t, err)
		return histories.Shared{
			Join: func(owner string) (histories.Client, error) {
				return joinPostgres(schema, server.URL, owner, clock.Now, breaks)
			},
			Spawn: func(owner string) (histories.Client, error) {
				cmd := exec.Command(exe, childArg, schema+postgresMark+server.URL, owner, clockPath)
				cmd.Stderr = os.Stderr
				return histories.Process(cmd)
			},
			Effects: func() ([]histories.Effect, error) { return pgEffects(t.Context(), pool, schema) },
			Close: func() error {
				_, dropped := pool.Exec(context.Background(), "drop schema "+schema+" cascade")
				pool.Close()
				return errors.Join(keeper.Close(), dropped, file.Close(), os.RemoveAll(dir))
			},
		}
	}}
}

// postgresMark stands between the schema and the URL of a store that a child opens.
const postgresMark = "@@"

func openPostgres(schema, owner string, clock func() time.Time) (*postgres.Store, error) {
	return postgres.Open(context.Background(), server.URL, postgres.Options{Schema: schema, Owner: owner, Clock: clock})
}

func joinPostgres(schema, url, owner string, clock func() time.Time, breaks defect) (histories.Client, error) {
	s, err := postgres.Open(context.Background(), url, postgres.Options{Schema: schema, Owner: owner, Clock: clock})
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.New(context.Background(), url)
	if err != nil {
		return nil, err
	}
	return pgClient{breaks.on(histories.Local{Store: s, Begin: func(ctx context.Context) (histories.Tx, error) {
		return beginPostgres(ctx,
			s, pool, schema)
	}}), pool}, nil
}

// pgClient closes the pool of its transactions too.
type pgClient struct {
	histories.Client
	pool *pgxpool.Pool
}

func (c pgClient) Close() error {
	defer c.pool.Close()
	return c.Client.Close()
}

func (c pgClient) Kill() error {
	defer c.pool.Close()
	return c.Client.Kill()
}

// beginPostgres begins a transaction with the ledger.
func beginPostgres(ctx context.Context, s *postgres.Store, pool *pgxpool.Pool, schema string) (histories.Tx, error) {
	tx, err := pool.Begin(ctx)
	if err != nil {
		return histories.Tx{}, err
	}
	write := func(ctx context.Context, e histories.Effect) error {
		_, err := tx.Exec(ctx, "insert into "+schema+".app_effect (number, message, generation) values ($1, $2, $3)", e.Number,
			[16]byte(e.Message), e.Generation)
		return err
	}
	return histories.Tx{
		Tx: s.Tx(tx), Write: write,
		Commit:   func() error { return tx.Commit(context.Background()) },
		Rollback: func() error { return tx.Rollback(context.Background()) },
	}, nil
}

func pgEffects(ctx context.Context, pool *pgxpool.Pool, schema string) ([]histories.Effect, error) {
	rows, err := pool.Query(ctx, "select number, message, generation from "+schema+".app_effect")
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (e histories.Effect, err error) {
		var id [16]byte
		err = row.Scan(&e.Number, &id, &e.Generation)
		e.Message = nixie.ID(id)
		return e, err
	})
}

// joinNamed opens the store that a child was told: a file, or a schema and a URL.
func joinNamed(store, owner string, clock func() time.Time) (histories.Client, error) {
	if schema, url, ok := strings.Cut(store, postgresMark); ok {
		return joinPostgres(schema, url, owner, clock, nil)
	}
	return joinSQLite(store, owner, clock, nil)
}
