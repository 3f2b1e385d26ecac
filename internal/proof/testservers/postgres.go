package testservers

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Postgres is a PostgreSQL for the tests of one process: private, on a socket in
// a folder of its own, and gone when the process is.
type Postgres struct {
	URL string // of a role that may do everything

	keeper
	settings string // options of the server, for a shell
	programs string
	who      *account
}

// postgresPatience bounds the making and the starting of a server.
const postgresPatience = time.Minute

// WithPostgres runs the tests of a package, m.Run, with a server of their own and
// returns their exit code. Without one the tests say so and are skipped.
func WithPostgres(run func() int, into *Postgres) int {
	return with(run, "PostgreSQL", postgresPatience, into)
}

// needless returns why this run starts no server. Each worker of a fuzz target is a process of
// its own, which would spend its time on starting one.
func needless() string {
	flag.Parse() // run does it again, to the same effect
	if testing.Short() {
		return short
	}
	if f := flag.Lookup("test.fuzz"); f != nil && f.Value.String() != "" {
		return "fuzz targets have no server"
	}
	return ""
}

// short is the reason of a run that wants to be over soon.
const short = "-short starts no servers"

func need(t testing.TB, reason string) {
	t.Helper()
	switch {
	case reason == "":
	case os.Getenv("NIXIE_TEST_REQUIRE") != "" && reason != short:
		t.Fatal(reason)
	default:
		t.Skip(reason)
	}
}

// start takes the server that is given, or makes one that is fast and loses what it
// has when the power goes.
func (p *Postgres) start(ctx context.Context, m Machine) error {
	if given := m.Env("NIXIE_TEST_POSTGRES"); given != "" {
		p.URL = given
		return nil
	}
	return p.make(ctx, m, fastFolder(), "fsync=off", "max_connections=200", "max_prepared_transactions=10", "shared_buffers=64MB")
}

// MakePostgres makes a server in a folder with settings as they stand in its file.
// It runs until Stop, or the process, ends.
func MakePostgres(ctx context.Context, folder string, settings ...string) (*Postgres, error) {
	ctx, stop := context.WithTimeout(ctx, postgresPatience)
	defer stop()
	p := &Postgres{}
	return p, p.make(ctx, This(), folder, settings...)
}

// make makes a server where one is installed.
func (p *Postgres) make(ctx context.Context, m Machine, folder string, settings ...string) error {
	file, err := m.postgres(ctx)
	if err != nil {
		return err
	}
	who, err := serverUser()
	if err != nil {
		return err
	}
	if p.folder, err = os.MkdirTemp(folder, "nixie-pg-"); err != nil {
		return err
	}
	if who != nil {
		if err := os.Chown(p.folder, int(who.Uid), int(who.Gid)); err != nil {
			return err
		}
	}
	p.who = who
	if p.programs = filepath.Dir(file); filepath.Ext(file) == ".jar" {
		if p.programs, err = p.unpack(file); err != nil {
			return err
		}
	}
	for _, setting := range settings {
		p.settings += " -c " + setting
	}
	return p.launch(ctx)
}

// postgres is the program of the server, or a packing that has it.
func (m Machine) postgres(ctx context.Context) (string, error) {
	if major := m.Env(majorOf); major != "" {
		return m.packed(major)
	}
	for _, s := range Find(ctx, m) {
		switch {
		case s.Name != "PostgreSQL":
		case s.File == "":
			return "", errors.New(s.String())
		default:
			return filepath.EvalSymlinks(s.File)
		}
	}
	return "", errors.New("PostgreSQL was not looked for")
}

// start-up of a server in its folder, as a part of scripts whose first argument is
// that, whose second the folder of the programs and whose third the settings.
const startPostgres = `"$2/pg_ctl" start -w -t 30 -s -D data -l server.log \
	-o "-k $1 -c listen_addresses= -c log_min_messages=fatal$3" >start.log 2>&1`

// launch makes the files of the server and starts it. It ends when the standard
// input of its keeper does: however the tests end, nothing stays behind.
func (p *Postgres) launch(ctx context.Context) error {
	const script = `cd "$1" && "$2/initdb" -D data -U nixie -A trust -E UTF8 --locale=C -N >init.log 2>&1 || { cat init.log; exit 1; }
` + startPostgres + ` || { cat start.log server.log; exit 1; }
echo ready
cat >/dev/null
for data in data standby/data; do "$2/pg_ctl" stop -m immediate -s -D $data >/dev/null 2>&1; done; cd / && rm -rf "$1"`
	shell := p.script(script)
	said, err := shell.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.run(shell); err != nil {
		return err
	}
	if err := waitReady(ctx, said); err != nil {
		return errors.Join(err, p.Stop())
	}
	p.URL = "postgres://nixie@/postgres?host=" + url.QueryEscape(p.folder)
	return nil
}

// script is a shell that runs as the server does, in its folder.
func (p *Postgres) script(text string) *exec.Cmd {
	cmd := exec.CommandContext(context.Background(), "sh", "-c", text, "sh", p.folder, p.programs, p.settings) // it ends by its leash
	cmd.Dir = p.folder
	detach(cmd, p.who)
	return cmd
}

// OwnPostgres starts one more server, for a test that is rough with it. It is
// skipped, or fails, where there is none.
func OwnPostgres(t testing.TB) *Postgres {
	t.Helper()
	p := &Postgres{}
	own(t, postgresPatience, p, p.start)
	return p
}

// Kill ends the server without a goodbye, and starts it again: what it did not
// write down is gone.
func (p *Postgres) Kill() error {
	const script = `cd "$1"; kill -9 $(head -n 1 data/postmaster.pid)
for try in $(seq 300); do ` + startPostgres + ` && exit 0; done # it has to wait until all that was killed is gone
cat start.log server.log; exit 1`
	if out, err := p.script(script).CombinedOutput(); err != nil {
		return fmt.Errorf("PostgreSQL did not start again: %w: %s", err, out)
	}
	return nil
}

// Halt stops the server as an administrator does, until Resume.
func (p *Postgres) Halt() error {
	return p.told(`cd "$1" && "$2/pg_ctl" stop -w -m fast -s -D data >start.log 2>&1 || { cat start.log; exit 1; }`)
}

// Resume starts it again.
func (p *Postgres) Resume() error {
	return p.told(`cd "$1" && ` + startPostgres + ` || { cat start.log server.log; exit 1; }`)
}

// Standby starts a replica that follows the server, and returns its URL.
func (p *Postgres) Standby() (string, error) {
	const script = `cd "$1" && mkdir standby &&
"$2/pg_basebackup" -h "$1" -U nixie -D standby/data -R -c fast -X stream >init.log 2>&1 || { cat init.log; exit 1; }
set -- "$1/standby" "$2" "$3"; cd "$1"
` + startPostgres + ` || { cat start.log server.log; exit 1; }`
	return strings.Replace(p.URL, url.QueryEscape(p.folder), url.QueryEscape(filepath.Join(p.folder, "standby")), 1), p.told(script)
}

// told runs a script to its end.
func (p *Postgres) told(script string) error {
	if out, err := p.script(script).CombinedOutput(); err != nil {
		return fmt.Errorf("PostgreSQL did not do it: %w: %s", err, out)
	}
	return nil
}

// waitReady reads until the server says that it is ready.
func waitReady(ctx context.Context, said io.Reader) error {
	heard := make(chan error, 1)
	go func() {
		line := make([]byte, 4096)
		n, err := said.Read(line)
		if text := strings.TrimSpace(string(line[:n])); text != "ready" {
			err = fmt.Errorf("PostgreSQL did not start: %s (%w)", text, cmp.Or(err, errors.New("no more was said")))
		} else {
			err = nil
		}
		heard <- err
	}()
	select {
	case err := <-heard:
		return err
	case <-ctx.Done():
		return fmt.Errorf("PostgreSQL did not start in time: %w", ctx.Err())
	}
}

// fastFolder is a file system in memory where there is one: what tests look at
// does not depend on the disk.
func fastFolder() string {
	const shm = "/dev/shm"
	if info, err := os.Stat(shm); err == nil && info.IsDir() {
		return shm
	}
	return ""
}

// serverUser returns the account that the server runs as when the tests run as root, which
// PostgreSQL refuses; nil is the account of the tests.
func serverUser() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "daemon"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return nil, err
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			return nil, err
		}
		return &account{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("PostgreSQL does not run as root, and no user is called postgres or daemon")
}
