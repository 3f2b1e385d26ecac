// Package rawlimit measures the least work of a durable queue on PostgreSQL, in two designs. One
// claims and deletes rows. The other appends to a table and reads on from the last position. Both
// write one row of a log for each message and commit a thousand at a time. They decode the
// messages, as every handler does, and retry nothing: they are no queues, but a limit for one.
package rawlimit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/nixie-go/nixie/bench/contest"
	"github.com/nixie-go/nixie/bench/postgres/database"
)

const (
	perCommit = 1000
	workers   = 2
	perCopy   = 5000
)

const logTable = `
create table if not exists log (
	pos bigint generated always as identity primary key, message bigint not null, outcome smallint not null,
	created timestamptz not null, ended timestamptz not null)`

// design is a way to keep messages.
type design struct {
	name, title string
	install     string
	// step queues what ends the rows that a worker has and reads its next ones.
	step func(b *pgx.Batch, w *worker)
}

// worker drains on one connection.
type worker struct {
	part int
	has  []int64 // positions
	last int64
}

func designs() []design {
	return []design{{
		name: "raw-rows", title: "rows claimed (SKIP LOCKED), deleted and logged",
		install: logTable + `;
create table if not exists message (
	pos bigint generated always as identity primary key, part smallint not null, body bytea not null,
	state smallint not null default 0, until timestamptz, created timestamptz not null default now());
create index if not exists message_waits on message (pos) where state = 0`,
		step: func(b *pgx.Batch, w *worker) {
			if len(w.has) > 0 {
				b.Queue(`with ended as (delete from message where pos = any($1) returning pos, created)
					insert into log (message, outcome, created, ended) select pos, 1, created, now() from ended`, w.has)
			}
			b.Queue(`with next as (select pos from message where state = 0 order by pos limit $1 for update skip locked)
				update message m set state = 1, until = now() + '30 s' from next where m.pos = next.pos returning m.pos, m.body`, perCommit)
		},
	}, {
		name: "raw-log", title: "an append-only table, each worker with a part of its own and its position in memory",
		install: logTable + `;
create table if not exists message (
	pos bigint generated always as identity, part smallint not null, body bytea not null,
	created timestamptz not null default now(), primary key (part, pos))`,
		step: func(b *pgx.Batch, w *worker) {
			if len(w.has) > 0 {
				b.Queue(`insert into log (message, outcome, created, ended)
					select pos, 1, created, now() from message where part = $1 and pos between $2 and $3`, w.part, w.has[0], w.last)
			}
			b.Queue("select pos, body from message where part = $1 and pos > $2 order by pos limit $3", w.part, w.last, perCommit)
		},
	}}
}

// Entrants returns the limits by design.
func Entrants() []contest.Entrant {
	var list []contest.Entrant
	for _, d := range designs() {
		list = append(list, contest.Entrant{
			Name: d.name, Kind: contest.Limit, Only: []contest.Scenario{contest.EnqueueBatch, contest.EnqueueBatches, contest.Drain},
			Settings: fmt.Sprintf("a limit: %s; %d a COPY; %d connections, one log row a message, %d a commit",
				d.title, perCopy, workers, perCommit),
			Open: func(ctx context.Context, s contest.Setup) (contest.Library, error) { return open(ctx, s, d) },
		})
	}
	return list
}

type limit struct {
	design
	pool   *pgxpool.Pool
	copies atomic.Int64
	left   atomic.Int64
}

func open(ctx context.Context, s contest.Setup, d design) (contest.Library, error) {
	pool, err := database.Open(ctx, s)
	if err != nil {
		return nil, err
	}
	l := &limit{design: d, pool: pool}
	if _, err = pool.Exec(ctx, d.install); err == nil {
		var left int
		left, err = database.Count(ctx, pool, "select count(*) from message")
		l.left.Store(int64(left))
	}
	if err != nil {
		pool.Close()
		return nil, err
	}
	return l, nil
}

func (l *limit) Enqueue(ctx context.Context, t contest.Task) error {
	return l.EnqueueBatch(ctx, []contest.Task{t})
}

func (l *limit) Batch() int { return perCopy }

func (l *limit) EnqueueBatch(ctx context.Context, list []contest.Task) error {
	part := l.copies.Add(1) % workers
	_, err := l.pool.CopyFrom(ctx, pgx.Identifier{"message"}, []string{"part", "body"},
		pgx.CopyFromSlice(len(list), func(i int) ([]any, error) {
			body, err := json.Marshal(list[i])
			return []any{part, body}, err
		}))
	return err
}

func (l *limit) Start(ctx context.Context, handle contest.Handler) (func() error, error) {
	var group sync.WaitGroup
	errs := make([]error, workers)
	for part := range workers {
		group.Go(func() { errs[part] = l.drain(ctx, &worker{part: part}, handle) })
	}
	return func() error {
		group.Wait()
		return errors.Join(errs...)
	}, nil
}

// drain works until its part is empty. Each step ends the rows of the step before.
func (l *limit) drain(ctx context.Context, w *worker, handle contest.Handler) error {
	for {
		ended := len(w.has)
		b := &pgx.Batch{}
		l.step(b, w)
		w.has = w.has[:0]
		answers := l.pool.SendBatch(ctx, b)
		if ended > 0 {
			if _, err := answers.Exec(); err != nil {
				return errors.Join(err, answers.Close())
			}
		}
		err := w.read(answers, handle)
		if err = errors.Join(err, answers.Close()); err != nil {
			return err
		}
		l.left.Add(-int64(ended))
		if len(w.has) == 0 {
			return nil
		}
	}
}

func (w *worker) read(answers pgx.BatchResults, handle contest.Handler) error {
	rows, err := answers.Query()
	if err != nil {
		return err
	}
	var pos int64
	var body []byte
	_, err = pgx.ForEachRow(rows, []any{&pos, (*pgtype.DriverBytes)(&body)}, func() error {
		w.has, w.last = append(w.has, pos), max(w.last, pos)
		t, err := contest.Decode(body)
		if err != nil {
			return err
		}
		return handle.Handle(t)
	})
	return err
}

func (l *limit) Left(context.Context) (int, error) { return int(l.left.Load()), nil }

func (l *limit) Dead(context.Context) (int, error) { return 0, nil }

func (l *limit) Each(ctx context.Context, yield func(contest.Task) error) error {
	return database.Each(ctx, l.pool, "select body from message", yield)
}

// Prove implements contest.Prover.
func (l *limit) Prove(ctx context.Context, _ contest.Scenario, n int) error {
	logged, err := database.Count(ctx, l.pool, "select count(distinct message) from log")
	if err == nil && logged != n {
		err = fmt.Errorf("%d messages are in the log, not %d", logged, n)
	}
	return err
}

func (l *limit) Close() error {
	l.pool.Close()
	return nil
}
