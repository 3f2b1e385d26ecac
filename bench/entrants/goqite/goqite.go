// Package goqite lets maragu.dev/goqite take part.
//
// It opens the database as its README says. The loop is Receive, handle, Delete in one goroutine.
// More goroutines would wait for the one connection, and the runner of its package jobs starts two
// for every message. Extending the timeout by nothing returns a failed message at once. There is no
// call for many messages; SendTx in one transaction replaces it. There are no dead letters: a
// message at its limit of receives stays in the table and counts as one here.
package goqite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"maragu.dev/goqite"

	"github.com/nixie-go/nixie/bench/contest"
	"github.com/nixie-go/nixie/bench/sqldriver"
)

// schema is the schema that the README asks users to install.
const schema = `
create table if not exists goqite (
  id text primary key default ('m_' || lower(hex(randomblob(16)))),
  created text not null default (strftime('%Y-%m-%dT%H:%M:%fZ')),
  updated text not null default (strftime('%Y-%m-%dT%H:%M:%fZ')),
  queue text not null,
  body blob not null,
  timeout text not null default (strftime('%Y-%m-%dT%H:%M:%fZ')),
  received integer not null default 0,
  priority integer not null default 0
) strict;

create trigger if not exists goqite_updated_timestamp after update on goqite begin
  update goqite set updated = strftime('%Y-%m-%dT%H:%M:%fZ') where id = old.id;
end;

create index if not exists goqite_queue_priority_created_idx on goqite (queue, priority desc, created);`

const (
	batch   = 1000
	poll    = time.Millisecond
	timeout = time.Minute // longer than any message is in hand
)

// Entrant is goqite.
func Entrant() contest.Entrant {
	return contest.Entrant{
		Name: "goqite", Kind: contest.Peer, Open: open, Module: "maragu.dev/goqite",
		Settings: "Receive and Delete in one loop, polls every 1 ms, 1000 SendTx a transaction",
	}
}

type library struct {
	db       *sql.DB
	queue    *goqite.Queue
	attempts int
}

func open(ctx context.Context, s contest.Setup) (contest.Library, error) {
	db, err := sqldriver.Open(ctx, s.Folder, sqldriver.Options{Synchronous: s.Synchronous})
	if err != nil {
		return nil, err
	}
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	attempts := s.Scenario.Attempts()
	queue := goqite.New(goqite.NewOpts{DB: db, Name: "bench", MaxReceive: attempts, Timeout: timeout})
	return &library{db: db, queue: queue, attempts: attempts}, nil
}

func message(t contest.Task) (goqite.Message, error) {
	body, err := json.Marshal(t)
	return goqite.Message{Body: body}, err
}

func (l *library) Enqueue(ctx context.Context, t contest.Task) error {
	m, err := message(t)
	if err != nil {
		return err
	}
	return l.queue.Send(ctx, m)
}

func (l *library) Batch() int { return batch }

func (l *library) EnqueueBatch(ctx context.Context, list []contest.Task) error {
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for _, t := range list {
		m, err := message(t)
		if err == nil {
			err = l.queue.SendTx(ctx, tx, m)
		}
		if err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return tx.Commit()
}

func (l *library) Start(ctx context.Context, handle contest.Handler) (func() error, error) {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	var failed error
	group.Go(func() {
		for ctx.Err() == nil && failed == nil {
			failed = l.one(ctx, handle)
		}
	})
	return func() error {
		cancel()
		group.Wait()
		if errors.Is(failed, context.Canceled) {
			return nil
		}
		return failed
	}, nil
}

// one receives and handles a message.
func (l *library) one(ctx context.Context, handle contest.Handler) error {
	m, err := l.queue.ReceiveAndWait(ctx, poll)
	if err != nil || m == nil {
		return err
	}
	t, err := contest.Decode(m.Body)
	if err != nil {
		return err
	}
	if handle.Handle(t) != nil {
		return l.queue.Extend(ctx, m.ID, 0)
	}
	return l.queue.Delete(ctx, m.ID)
}

// Left counts the messages that may be received again.
func (l *library) Left(ctx context.Context) (int, error) {
	all, err := sqldriver.Count(ctx, l.db, "select count(*) from goqite")
	if err != nil || all == 0 {
		return 0, err
	}
	dead, err := l.Dead(ctx)
	return all - dead, err
}

// Dead counts messages at the limit of receives that no worker holds.
func (l *library) Dead(ctx context.Context) (int, error) {
	return sqldriver.Count(ctx, l.db,
		"select count(*) from goqite where received >= ? and timeout <= strftime('%Y-%m-%dT%H:%M:%fZ')", l.attempts)
}

func (l *library) Each(ctx context.Context, yield func(contest.Task) error) error {
	return sqldriver.Each(ctx, l.db, "select body from goqite", func(body []byte) error {
		t, err := contest.Decode(body)
		if err != nil {
			return err
		}
		return yield(t)
	})
}

func (l *library) Close() error { return l.db.Close() }
