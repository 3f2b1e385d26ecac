package postgres

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/sqlfile"
	"github.com/nixie-go/nixie/store/engine"
)

// Migrations are those of this program.
func Migrations() fs.FS { return migrations }

// SchemaOf is a schema of other migrations.
func SchemaOf(dsn string, opts Options, folder fs.FS) (*Schema, error) {
	at, err := locate(dsn, opts)
	if err != nil {
		return nil, err
	}
	return newSchema(at, folder)
}

// OpenOf opens a store as a program of other migrations does.
func OpenOf(ctx context.Context, dsn string, opts Options, folder fs.FS) (*Store, error) {
	return open(ctx, dsn, opts, folder)
}

// Crash ends the store as the death of its process would: no goodbye, and after a
// while others take its leases. The while is over at once.
func (s *Store) Crash() error {
	if !s.gate.close() {
		return nil
	}
	ctx := context.Background()
	if s.owner.stop != nil {
		s.owner.stop()
		<-s.owner.done
	}
	_, err := s.own.Exec(ctx, s.named("update @.owner set seen = 'epoch' where n = $1"), s.owner.self())
	s.own.Close()
	return err
}

// FoldAtOnce is the number of letters after which a process folds what counts them.
const FoldAtOnce = foldAtOnce

// Changed notes letters as if calls had changed them.
func (s *Store) Changed(ctx context.Context, letters int) { s.changed(ctx, letters) }

// CommitAborted commits a transaction that PostgreSQL has given up.
func (s *Store) CommitAborted(ctx context.Context) error {
	return s.write(ctx, func(t *tx) error {
		t.run("select 1 / 0")
		_ = t.send() // as if the answer had not been read
		return nil
	})
}

// Setting returns a setting of a connection of the pool.
func (s *Store) Setting(ctx context.Context, name string) (value string, err error) {
	err = s.pool.QueryRow(ctx, "select current_setting($1)", name).Scan(&value)
	return value, err
}

// Run runs statements in a transaction.
func (s *Store) Run(ctx context.Context, queries ...string) error {
	return s.write(ctx, func(t *tx) error {
		for _, query := range queries {
			t.run(query)
		}
		return t.send()
	})
}

// Leave begins a transaction with a statement and does something else before it goes
// on.
func (s *Store) Leave(ctx context.Context, query string, meanwhile func(session int64)) error {
	return s.write(ctx, func(t *tx) error {
		var session int64
		t.run(query)
		t.number(&session, "select pg_backend_pid()::bigint")
		if err := t.send(); err != nil {
			return err
		}
		meanwhile(session)
		t.run("select 1")
		return t.send()
	})
}

// Probing makes the listener, before it starts, probe more often.
func (s *Store) Probing(every, patience time.Duration) {
	s.listener.every, s.listener.patience = every, patience
}

// Hears reports whether the listener has heard something on its connection.
func (s *Store) Hears() bool { return s.listener.hears.Load() }

// SettingOfCalls returns a setting of a transaction.
func (s *Store) SettingOfCalls(ctx context.Context, name string) (value string, err error) {
	err = s.write(ctx, func(t *tx) error {
		t.read(func(r row) error { return r.Scan(&value) }, "select current_setting($1)", name)
		return t.send()
	})
	return value, err
}

// Noted waits until all is told to others.
func (s *Store) Noted() { s.notifier.all.Wait() }

// Beat sends one heartbeat of a process.
func (s *Store) Beat(ctx context.Context) { s.owner.once(ctx, s) }

// Waiting counts the calls that wait for a group.
func (s *Store) Waiting() int { return s.group.size() }

// Members is the statement that reads the messages of batches.
func (s *Store) Members() string { return s.named("claimed_members.sql") }

// Statements are those of the folder sql for a schema, by name, with samples of what is filled in,
// and how many arguments each has; -1 where what is filled in has some.
func Statements(schema string) (all map[string]string, args map[string]int, err error) {
	files, err := sqlfile.Read(sqlFolder, "$")
	all, args = map[string]string{}, map[string]int{}
	for name, f := range files {
		if f.Part {
			continue
		}
		args[name] = len(f.In)
		streams := "select 1, ''"
		if strings.HasPrefix(name, "enter_") || strings.HasPrefix(name, "leave_") || strings.HasPrefix(name, "empty_") {
			streams = "s.n = 0"
		}
		if slices.Contains(f.Fill, "these") {
			args[name] = -1
		}
		all[name] = inSchema(fill(name, "where", "true", "streams", streams, "lock", "for update", "keys", "select 1, ''", "these",
			which().ids, "queues", "true",
			"direction", "", "limit", "1", "letters", "@.letter l", "operation", "(select null::uuid)", "key", "l.reason", "examples", "3",
			"deaths", "@.death l", "hour", "0", "within", "true", "parts", "@.queue q", "part", "l.queue = q.n"), schema)
	}
	return all, args, err
}

// Rest sends heartbeats as if nothing had been claimed for a while, and reports whether the
// store rests from them.
func (s *Store) Rest(ctx context.Context) bool {
	for range restAfter + 1 {
		s.owner.once(ctx, s)
	}
	s.owner.rest.claiming.RLock()
	defer s.owner.rest.claiming.RUnlock()
	return s.owner.rest.left > 0
}

// SettleHeard settles, and returns the statements that this took and the number of rows that it
// wrote.
func (s *Store) SettleHeard(ctx context.Context, settlements ...nixie.Settlement) (run []string, rows int64, err error) {
	errs := make([]error, len(settlements))
	err = s.write(ctx, func(t *tx) error {
		const written = "select sum(n_tup_ins + n_tup_upd + n_tup_del) from pg_stat_xact_user_tables where schemaname = $1"
		var before int64
		t.number(&before, written, s.opts.Schema)
		if err := t.send(); err != nil {
			return err
		}
		on := t.on
		t.on = heard{on, &run}
		if err := errors.Join(engine.Settle(t.verb(), settlements, errs), t.finish(), t.send()); err != nil {
			return err
		}
		t.on = on
		t.number(&rows, written, s.opts.Schema)
		err := t.send()
		rows -= before
		return err
	})
	return run, rows, errors.Join(errors.Join(errs...), err)
}

// heard notes what is asked.
type heard struct {
	asker
	list *[]string
}

func (h heard) ask(ctx context.Context, list []stmt) error {
	for i := range list {
		*h.list = append(*h.list, list[i].query)
	}
	return h.asker.ask(ctx, list)
}

// Schema returns the name of the schema.
func (s *Store) Schema() string { return s.opts.Schema }
