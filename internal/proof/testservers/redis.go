package testservers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// Redis is a server for the tests of one process: private, on a free port and in a folder of its
// own, and gone when the process is. It writes each change to its append-only file at once.
type Redis struct {
	Addr string // host and port

	keeper
	program string
	options []string // in addition to the usual ones
}

// redisPatience bounds the start of a server.
const redisPatience = 30 * time.Second

// WithRedis runs the tests of a package, m.Run, with a server of their own and returns their exit
// code. Without one the tests say so and are skipped.
func WithRedis(run func() int, into *Redis) int { return with(run, "Redis", redisPatience, into) }

// OwnRedis starts one more server, for a test that is rough with it, with options in addition to
// the usual ones, such as --requirepass. The test is skipped, or fails, where there is none.
func OwnRedis(t testing.TB, options ...string) *Redis {
	t.Helper()
	r := &Redis{options: options}
	own(t, redisPatience, r, r.start)
	return r
}

// MakeRedis starts a server, or uses the one that is given. It runs until Stop, or the process,
// ends.
func MakeRedis(ctx context.Context, options ...string) (*Redis, error) {
	ctx, stop := context.WithTimeout(ctx, redisPatience)
	defer stop()
	r := &Redis{options: options}
	return r, r.start(ctx, This())
}

func (r *Redis) start(ctx context.Context, m Machine) error {
	for _, s := range Find(ctx, m) {
		switch {
		case s.Name != "Redis":
		case s.Given:
			r.Addr = m.Env(s.Env)
			return nil
		case s.File == "":
			return errors.New(s.String())
		default:
			r.program = s.File
		}
	}
	var err error
	if r.Addr, _, err = freePorts(); err != nil {
		return err
	}
	r.port = r.Addr
	if r.folder, err = os.MkdirTemp(fastFolder(), "nixie-redis-"); err != nil {
		return err
	}
	const script = `cd "$1"; ` + runRedis + `cat >/dev/null; kill -9 $(cat pid); cd / && rm -rf "$1"`
	if err := r.run(r.script(script)); err != nil {
		return err
	}
	if err := r.listens(ctx); err != nil {
		return errors.Join(err, r.Stop())
	}
	return nil
}

// runRedis starts a server, as a part of scripts whose first argument is its folder and whose
// others are its program and options.
const runRedis = `folder=$1; shift; "$@" >>"$folder/server.log" 2>&1 </dev/null & echo $! >pid; set -- "$folder"; `

func (r *Redis) script(text string) *exec.Cmd {
	_, port, _ := net.SplitHostPort(r.Addr)
	args := slices.Concat([]string{"-c", text, "sh", r.folder, r.program, "--bind", "127.0.0.1", "--port", port, "--dir", r.folder,
		"--save", "", "--appendonly", "yes", "--appendfsync", "always"}, r.options)
	cmd := exec.CommandContext(context.Background(), "sh", args...) // it ends by its leash
	cmd.Dir = r.folder
	detach(cmd, nil)
	return cmd
}

// listens waits until the server answers, which it does only after it has read its file.
func (r *Redis) listens(ctx context.Context) error {
	return r.until(ctx, "Redis", r.answers)
}

func (r *Redis) answers(ctx context.Context) bool {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", r.Addr)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }() // it was only asked
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := io.WriteString(conn, "PING\r\n"); err != nil {
		return false
	}
	answer := make([]byte, 64)
	n, err := conn.Read(answer)
	return err == nil && n > 0 && !strings.HasPrefix(string(answer[:n]), "-LOADING")
}

// Kill ends the server without a goodbye, and starts it again.
func (r *Redis) Kill(ctx context.Context) error {
	if out, err := r.script(`kill -9 $(cat pid)`).CombinedOutput(); err != nil {
		return fmt.Errorf("Redis was not killed: %w: %s", err, out)
	}
	if err := leaves(ctx, r.Addr); err != nil {
		return fmt.Errorf("Redis did not end in time: %w", err)
	}
	if out, err := r.script(`cd "$1"; ` + runRedis).CombinedOutput(); err != nil {
		return fmt.Errorf("Redis did not start again: %w: %s", err, out)
	}
	return r.listens(ctx)
}
