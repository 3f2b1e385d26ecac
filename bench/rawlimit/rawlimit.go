// Package rawlimit measures the least work of a durable queue in a file of SQLite. It reads the
// rows in order, writes one row of a log for each, and commits a thousand at a time at synchronous
// FULL. It decodes the messages, as every handler does. It claims and retries nothing and would
// lose its position in a crash: it is no queue, but a limit for one.
package rawlimit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/nixie-go/nixie/bench/contest"
)

const perCommit = 1000

// The statements. Each engine keeps those that it has prepared.
const (
	begin  = "begin immediate"
	commit = "commit"
	insert = "insert into message (id, queue, stream, body, headers, created) values (?, 1, 's1', ?, '{}', ?)"
	next   = "select pos, id, stream, attempts, body, headers from message where pos > ? order by pos limit ?"
	write  = `insert into log (id, queue, attempts, outcome, created, finished)
		select id, queue, attempts, 1, created, ? from message where pos between ? and ?`
	messages = "select count(*) from message"
	logged   = "select count(distinct id) from log"
)

// install makes the tables and sets the durability.
func install() []string {
	return []string{
		"pragma journal_mode = wal",
		"pragma synchronous = full",
		"pragma cache_size = -65536",
		"pragma wal_autocheckpoint = 4000",
		`create table if not exists message (
			pos integer primary key, id blob not null, queue int not null, stream text, attempts int not null default 0,
			body blob not null, headers text, created int not null)`,
		`create table if not exists log (
			pos integer primary key, id blob, queue int, attempts int, outcome int, created int, finished int)`,
	}
}

// row is a message as it was read. The reader owns its bytes.
type row struct {
	pos      int64
	id, body []byte
}

// engine is a connection of a driver.
type engine interface {
	// run runs a statement and returns the number in its first row, if any.
	run(statement string, args ...any) (int64, error)
	// read appends the rows of the statement next.
	read(to []row, after int64, most int) ([]row, error)
	close() error
}

// Entrants returns the limits by driver.
func Entrants() []contest.Entrant {
	var list []contest.Entrant
	for _, d := range drivers() {
		list = append(list, contest.Entrant{
			Name: "raw-" + d.name, Kind: contest.Limit, Only: []contest.Scenario{contest.Drain},
			Settings: "the limit: read, one log row a message, 1000 a commit, FULL, by " + d.title,
			Open: func(_ context.Context, s contest.Setup) (contest.Library, error) {
				return open(d, filepath.Join(s.Folder, "raw.db"))
			},
		})
	}
	return list
}

// driver is a way to talk to SQLite.
type driver struct {
	name, title string
	open        func(path string) (engine, error)
}

func open(d driver, path string) (contest.Library, error) {
	e, err := d.open(path)
	if err != nil {
		return nil, err
	}
	l := &limit{engine: e}
	for _, statement := range install() {
		if _, err := e.run(statement); err != nil {
			return nil, errors.Join(err, e.close())
		}
	}
	left, err := e.run(messages)
	if err != nil {
		return nil, errors.Join(err, e.close())
	}
	l.left.Store(left)
	return l, nil
}

type limit struct {
	engine engine
	left   atomic.Int64
}

func (l *limit) Enqueue(ctx context.Context, t contest.Task) error {
	return l.EnqueueBatch(ctx, []contest.Task{t})
}

func (l *limit) Batch() int { return perCommit }

func (l *limit) EnqueueBatch(_ context.Context, list []contest.Task) error {
	if _, err := l.engine.run(begin); err != nil {
		return err
	}
	now := time.Now().UnixNano()
	for _, t := range list {
		id, err := uuid.NewV7()
		if err != nil {
			return err
		}
		body, err := json.Marshal(t)
		if err != nil {
			return err
		}
		if _, err := l.engine.run(insert, id[:], body, now); err != nil {
			return err
		}
	}
	_, err := l.engine.run(commit)
	return err
}

func (l *limit) Start(ctx context.Context, handle contest.Handler) (func() error, error) {
	var group sync.WaitGroup
	var failed error
	group.Go(func() { failed = l.drain(ctx, handle) })
	return func() error {
		group.Wait()
		return failed
	}, nil
}

func (l *limit) drain(ctx context.Context, handle contest.Handler) error {
	var rows []row
	var after int64
	for ctx.Err() == nil && l.left.Load() > 0 {
		var err error
		if rows, err = l.engine.read(rows[:0], after, perCommit); err != nil {
			return err
		}
		if len(rows) == 0 {
			return fmt.Errorf("no rows, and %d are left", l.left.Load())
		}
		for _, r := range rows {
			t, err := contest.Decode(r.body)
			if err != nil {
				return err
			}
			if err := handle.Handle(t); err != nil {
				return err
			}
		}
		first := rows[0].pos
		after = rows[len(rows)-1].pos
		if err := l.log(first, after); err != nil {
			return err
		}
		l.left.Add(-int64(len(rows)))
	}
	return ctx.Err()
}

func (l *limit) log(first, last int64) error {
	if _, err := l.engine.run(begin); err != nil {
		return err
	}
	if _, err := l.engine.run(write, time.Now().UnixNano(), first, last); err != nil {
		return err
	}
	_, err := l.engine.run(commit)
	return err
}

func (l *limit) Left(context.Context) (int, error) { return int(l.left.Load()), nil }

func (l *limit) Dead(context.Context) (int, error) { return 0, nil }

func (l *limit) Each(context.Context, func(contest.Task) error) error {
	return errors.New("the limit drains only")
}

// Prove implements contest.Prover.
func (l *limit) Prove(_ context.Context, _ contest.Scenario, n int) error {
	rows, err := l.engine.run(logged)
	if err != nil {
		return err
	}
	if rows != int64(n) {
		return fmt.Errorf("%d messages are in the log, not %d", rows, n)
	}
	return nil
}

func (l *limit) Close() error { return l.engine.close() }
