package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/nixie-go/nixie/bench/contest"
	"github.com/nixie-go/nixie/bench/match"
	"github.com/nixie-go/nixie/internal/proof/testservers"
)

// server is a Redis whose database is emptied for each measurement.
type server struct {
	own     *testservers.Redis
	folder  string // of its append-only file
	client  *redis.Client
	process int // 0: on another machine
	facts   []string
}

// open starts a server that is as durable as most are. It rewrites its append-only file only when
// it is told to, so that no library pays for the file of the one before.
func open(ctx context.Context, folder string) (_ match.Host, err error) {
	s := &server{}
	if s.folder, err = os.MkdirTemp(folder, "bench-redis-"); err != nil {
		return nil, err
	}
	s.own, err = testservers.MakeRedis(ctx, "--dir", s.folder, "--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0")
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.folder))
	}
	s.client = redis.NewClient(&redis.Options{Addr: s.own.Addr})
	if err := s.look(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// look reads what the server is. A server with records of others is refused.
func (s *server) look(ctx context.Context) error {
	keys, err := s.client.DBSize(ctx).Result()
	if err != nil {
		return err
	}
	if keys > 0 {
		return fmt.Errorf("the server has %d keys, and this empties it: give one that has none", keys)
	}
	version, err := s.info(ctx, "redis_version")
	if err != nil {
		return err
	}
	text := "Redis " + version
	for n, name := range []string{"appendonly", "appendfsync", "maxmemory-policy"} {
		set, err := s.client.ConfigGet(ctx, name).Result()
		if err != nil {
			return err
		}
		text += fmt.Sprintf("%c %s %s", ":,,"[n], name, set[name])
	}
	s.facts = []string{text + "; the same for all."}
	process, err := s.info(ctx, "process_id")
	if err != nil {
		return err
	}
	if name, err := os.ReadFile("/proc/" + process + "/comm"); err == nil && strings.TrimSpace(string(name)) == "redis-server" {
		s.process, err = strconv.Atoi(process)
		return err
	}
	s.facts = append(s.facts, "The server is on another machine: its processor time is not known.")
	return nil
}

// info returns a field of what the server tells about itself.
func (s *server) info(ctx context.Context, field string) (string, error) {
	text, err := s.client.Info(ctx, "server", "persistence").Result()
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(value), nil
		}
	}
	return "", fmt.Errorf("the server does not tell its %s", field)
}

// Facts implements match.Host.
func (s *server) Facts() []string { return s.facts }

// Workspace implements match.Host.
func (s *server) Workspace(_ context.Context, scenario contest.Scenario) (match.Workspace, error) {
	return &database{server: s, setup: contest.Setup{Scenario: scenario, URL: s.own.Addr, Postmaster: s.process}}, nil
}

// Close implements match.Host.
func (s *server) Close() error {
	return errors.Join(s.client.Close(), s.own.Stop(), os.RemoveAll(s.folder))
}

// database is the database of one measurement.
type database struct {
	server *server
	setup  contest.Setup
	file   int64 // size of the append-only file at the beginning
}

// Setup implements match.Workspace.
func (d *database) Setup() contest.Setup { return d.setup }

// Begin implements match.Workspace. It makes the append-only file as short as it can be.
func (d *database) Begin(ctx context.Context) (err error) {
	if err := d.server.client.BgRewriteAOF(ctx).Err(); err != nil {
		return err
	}
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for range look.C {
		running, err := d.server.info(ctx, "aof_rewrite_in_progress")
		if err != nil {
			return err
		}
		if running == "0" {
			break
		}
	}
	d.file, err = d.size(ctx)
	return err
}

// End implements match.Workspace.
func (d *database) End(ctx context.Context, r *contest.Result) error {
	now, err := d.size(ctx)
	r.WAL += now - d.file
	r.File = now
	return err
}

// size returns the size of the append-only file.
func (d *database) size(ctx context.Context) (int64, error) {
	text, err := d.server.info(ctx, "aof_current_size")
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
}

// Remove implements match.Workspace.
func (d *database) Remove(ctx context.Context) error { return d.server.client.FlushDB(ctx).Err() }
