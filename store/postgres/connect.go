package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/nixie-go/nixie"
)

const (
	leastServer = 130_000 // PostgreSQL 13
	errProtocol = "08P01" // the answer of a pooler to a setting that it does not know
)

// connect makes the pool. Behind a pooler, which shares sessions, nothing is left in a session: no
// settings, no prepared statements, no listening.
func (s *Store) connect(ctx context.Context) error {
	err := s.dial(ctx)
	if !s.pooled && codeOf(err) == errProtocol {
		s.pooled = true
		err = s.dial(ctx)
	}
	if err == nil && s.pooled && s.sessionSettings == "" {
		s.pool.Close() // it was made for sessions of our own
		err = s.dial(ctx)
	}
	return err
}

// dial makes a pool and checks the server.
func (s *Store) dial(ctx context.Context) (err error) {
	config := s.configure()
	if s.pooled {
		config.ConnConfig.RuntimeParams = map[string]string{"application_name": "nixie"}
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
		settings := s.settings()
		maps.Copy(settings, s.config.ConnConfig.RuntimeParams)
		s.sessionSettings = perTransaction(settings)
	}
	if s.pool, err = pgxpool.NewWithConfig(context.WithoutCancel(ctx), config); err != nil {
		return err
	}
	s.own = s.pool
	if err = s.look(ctx); err != nil {
		s.pool.Close()
	}
	return err
}

// look checks the version of the server, and whether the session is ours: a pooler shows another
// number.
func (s *Store) look(ctx context.Context) error {
	c, err := s.acquire(ctx, s.pool)
	if err != nil {
		return err
	}
	defer c.Release()
	if s.config.BeforeConnect != nil {
		s.show(c.Conn().Config())
	}
	var server int
	var session uint32
	if err := c.QueryRow(ctx, "select current_setting('server_version_num')::int, pg_backend_pid(), current_database()::text").Scan(&server,
		&session, &s.database); err != nil {
		return err
	}
	if server < leastServer {
		return nixie.Errorf(nixie.CodeUnavailable, "PostgreSQL %d is too old: use 13 or newer", server/10_000)
	}
	s.pooled = session != c.Conn().PgConn().PID()
	return nil
}

// perTransaction returns the statement that sets for a transaction what is otherwise set for a
// session.
func perTransaction(settings map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if !strings.HasPrefix(name, "tcp_") && name != "application_name" {
			parts = append(parts, fmt.Sprintf("set_config('%s', '%s', true)", name, strings.ReplaceAll(settings[name], "'", "''")))
		}
	}
	return "select " + strings.Join(parts, ", ")
}

// warn reports a problem that stops no call.
func (s *Store) warn(err error) {
	if s.opts.Warn != nil {
		s.opts.Warn(err)
	}
}
