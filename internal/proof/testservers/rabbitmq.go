package testservers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// RabbitMQ is a server for the tests of one process: one node, private, on free ports and in a
// folder of its own, and gone when the process is.
type RabbitMQ struct {
	Addr       string // host and port
	Management string // URL of its management API; "": it has none

	keeper
	program  string
	settings []string // lines of its configuration
	env      []string
}

// rabbitPatience bounds the start of a server.
const rabbitPatience = 2 * time.Minute

// TooLargeForRabbitMQ is more bytes than a message on a server of ours may have.
const TooLargeForRabbitMQ = 1 << 20

// WithRabbitMQ runs the tests of a package, m.Run, with a server of their own and returns their
// exit code. Without one the tests say so and are skipped.
func WithRabbitMQ(run func() int, into *RabbitMQ) int {
	return with(run, "RabbitMQ", rabbitPatience, into)
}

// OwnRabbitMQ starts one more server, for a test that is rough with it, with lines of configuration
// in addition to the usual ones. The test is skipped, or fails, where there is none.
func OwnRabbitMQ(t testing.TB, settings ...string) *RabbitMQ {
	t.Helper()
	r := &RabbitMQ{settings: settings}
	own(t, rabbitPatience, r, r.start)
	return r
}

// ManagedRabbitMQ starts one more server, which has a management API. The test is skipped, or
// fails, where there is none.
func ManagedRabbitMQ(t testing.TB) *RabbitMQ {
	t.Helper()
	_, port, err := freePorts()
	if err != nil {
		t.Fatal(err)
	}
	r := &RabbitMQ{Management: "http://" + port}
	r.settings = []string{"management.tcp.ip = 127.0.0.1",
		"management.tcp.port = " + portOf(port), "collect_statistics_interval = 200"}
	own(t, rabbitPatience, r, r.start)
	return r
}

func portOf(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}

func (r *RabbitMQ) start(ctx context.Context, m Machine) error {
	for _, s := range Find(ctx, m) {
		switch {
		case s.Name != "RabbitMQ":
		case s.Given:
			r.Addr = m.Env(s.Env)
			return nil
		case s.File == "":
			return errors.New(s.String())
		default:
			r.program = s.File
		}
	}
	const real = "/usr/lib/rabbitmq/bin/rabbitmq-server" // the one on the path becomes another user
	if _, err := os.Stat(real); err == nil {
		r.program = real
	}
	if err := r.prepare(); err != nil {
		return err
	}
	const script = `cd "$1"; setsid "$2" >>"$1/server.log" 2>&1 </dev/null & echo $! >pid; ` +
		`cat >/dev/null; kill -9 -$(cat pid); epmd -kill >/dev/null; cd / && rm -rf "$1"` // a process group of its own
	if err := r.run(r.script(script)); err != nil {
		return err
	}
	if err := r.listens(ctx); err != nil {
		return errors.Join(err, r.Stop())
	}
	return nil
}

// prepare makes the folder of a server, and says where it finds what.
func (r *RabbitMQ) prepare() error {
	amqp, dist, err := freePorts()
	if err != nil {
		return err
	}
	names, _, err := freePorts()
	if err != nil {
		return err
	}
	if r.folder, err = os.MkdirTemp(fastFolder(), "nixie-rabbitmq-"); err != nil {
		return err
	}
	r.Addr, r.port = amqp, amqp
	config := filepath.Join(r.folder, "rabbitmq.conf")
	lines := slices.Concat([]string{fmt.Sprint("max_message_size = ", TooLargeForRabbitMQ), "disk_free_limit.absolute = 50MB",
		"vm_memory_high_watermark.absolute = 1GB", "loopback_users = none"}, r.settings)
	if err := os.WriteFile(config, []byte(strings.Join(append(lines, ""), "\n")), 0o600); err != nil {
		return err
	}
	if r.Management != "" {
		if err := os.WriteFile(filepath.Join(r.folder, "ENABLED_PLUGINS_FILE"), []byte("[rabbitmq_management]."), 0o600); err != nil {
			return err
		}
	}
	r.env = append(os.Environ(), "HOME="+r.folder, "RABBITMQ_NODENAME=nixie@localhost", "RABBITMQ_NODE_IP_ADDRESS=127.0.0.1",
		"RABBITMQ_NODE_PORT="+portOf(amqp), "RABBITMQ_DIST_PORT="+portOf(dist), "ERL_EPMD_PORT="+portOf(names),
		"ERL_EPMD_ADDRESS=127.0.0.1",
		"ERL_EPMD_RELAXED_COMMAND_CHECK=1", // it may be ended while it still knows a node that was killed
		"RABBITMQ_CONF_ENV_FILE="+os.DevNull, "RABBITMQ_LOGS=-", "RABBITMQ_CONFIG_FILE="+config,
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=+S 2:2 +sbwt none")
	if r.Management != "" { // the API knows of a queue by its tick
		r.env = append(r.env, "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=+S 2:2 +sbwt none -rabbit quorum_tick_interval 200")
	}
	for _, name := range []string{"MNESIA_BASE", "LOG_BASE", "PLUGINS_EXPAND_DIR", "ENABLED_PLUGINS_FILE", "PID_FILE"} {
		r.env = append(r.env, "RABBITMQ_"+name+"="+filepath.Join(r.folder, name))
	}
	return nil
}

func (r *RabbitMQ) script(text string) *exec.Cmd {
	cmd := exec.CommandContext(context.Background(), "sh", "-c", text, "sh", r.folder, r.program) // it ends by its leash
	cmd.Dir, cmd.Env = r.folder, r.env
	detach(cmd, nil)
	return cmd
}

// listens waits until the server greets a client.
func (r *RabbitMQ) listens(ctx context.Context) error {
	return r.until(ctx, "RabbitMQ", r.answers)
}

func (r *RabbitMQ) answers(ctx context.Context) bool {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", r.Addr)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }() // it was only asked
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := io.WriteString(conn, "AMQP\x00\x00\x09\x01"); err != nil {
		return false
	}
	if _, err = conn.Read(make([]byte, 1)); err != nil || r.Management == "" {
		return err == nil
	}
	ask, err := http.NewRequestWithContext(ctx, http.MethodGet, r.Management+"/api/overview", nil)
	if err != nil {
		return false
	}
	said, err := http.DefaultClient.Do(ask)
	if err != nil {
		return false
	}
	return said.Body.Close() == nil && said.StatusCode == http.StatusUnauthorized
}
