//go:build linux

package cli_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/store/sqlite"
)

// TestBadTelemetry prints what happens to wrong settings of telemetry. Nothing is touched.
func TestBadTelemetry(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close() //nolint:errcheck // the test is over
	address := taken.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	d.write("unknown.yaml", "log:\n  leval: info\n")
	d.write("unit.yaml", "listen: 8321\n")
	d.write("level.yaml", "log: {level: 3}\n")
	t.Logf("%-28s %4s  %s", "what is wrong", "exit", "what nixie says")
	for _, tc := range []struct {
		name string
		code int
		want string
		args []string
	}{
		{"port taken", 1, "port " + port + " of 127.0.0.1 is taken: end the program that has it, or give another one by --listen",
			[]string{"serve", "--listen", address}},
		{"port of --metrics taken", 1, "or give another one by --metrics", []string{"work", "q", "--metrics", address, "--", "true"}},
		{"address not loopback", 2, `--listen: "0.0.0.0:8321" may be reached from other machines`,
			[]string{"serve", "--listen", "0.0.0.0:8321"}},
		{"all addresses", 2, `--metrics: ":9464" may be reached from other machines`,
			[]string{"work", "q", "--metrics", ":9464", "--", "true"}},
		{"address without a port", 2, `--pprof: "127.0.0.1" has no port`, []string{"serve", "--pprof", "127.0.0.1"}},
		{"--metrics equal to --listen", 2, "--metrics is 127.0.0.1:8321, where nixie serve listens",
			[]string{"work", "q", "--metrics", "127.0.0.1:8321", "--", "true"}},
		{"--pprof equal to --listen", 2, "--pprof and --listen are both 127.0.0.1:8321",
			[]string{"serve", "--pprof", "127.0.0.1:8321", "--listen", "127.0.0.1:8321"}},
		{"unknown key", 2, `unknown.yaml, line 2, column 3: key "log.leval" is unknown: did you mean log.level?`,
			[]string{"serve", "--config", "unknown.yaml"}},
		{"wrong unit", 2, `unit.yaml, line 1, column 9: listen: "8321" has no port: give an address such as 127.0.0.1:8321`,
			[]string{"serve", "--config", "unit.yaml"}},
		{"wrong type", 2, `level.yaml, line 1, column 14: log.level: "3" is unknown: choose one of debug, info, warn, error`,
			[]string{"serve", "--config", "level.yaml"}},
	} {
		got := d.finish(d.command("nixie", tc.args...))
		said := strings.TrimSpace(got.err)
		t.Logf("%-28s %4d  %s", tc.name, got.code, said)
		if got.code != tc.code || !strings.Contains(said, tc.want) {
			t.Errorf("%s: exit %d, %q; want %d, %q", tc.name, got.code, said, tc.code, tc.want)
		}
	}
	if d.read("nixie.db") != "" {
		t.Error("a store was made")
	}
}

// served is nixie serve as a process.
type served struct {
	*workspace
	cmd  *exec.Cmd
	base string
}

func (d *workspace) serve(args ...string) *served {
	d.t.Helper()
	cmd := d.command("nixie", append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	base, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		d.t.Fatal(err)
	}
	return &served{d, cmd, strings.TrimSpace(base)}
}

func (s *served) stop() {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil {
		s.t.Error(err)
	}
}

func (s *served) get(path string) string {
	s.t.Helper()
	answer, err := http.Get(s.base + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was only read
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %d, %v\n%s", path, answer.StatusCode, err, body)
	}
	return string(body)
}

// With 10,000 queues a scrape stays small, numbers for scalers have all, and a client that goes
// away in the middle harms no other.
func TestBadTelemetryManyQueues(t *testing.T) {
	t.Parallel()
	const queues = 10_000
	d := newWorkspace(t)
	st, err := sqlite.Open(d.path("nixie.db"), sqlite.Options{Reserve: -1})
	if err != nil {
		t.Fatal(err)
	}
	for lo := 0; lo < queues; lo += nixie.MaxBatch {
		var list []nixie.Message
		for i := lo; i < min(lo+nixie.MaxBatch, queues); i++ {
			list = append(list, nixie.Message{Queue: fmt.Sprintf("queue-%05d", i)})
		}
		if _, err := st.Enqueue(t.Context(), list...); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	s := d.serve()
	for range 20 {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "GET /stats.json HTTP/1.1\r\nHost: x\r\n\r\n")
		if _, err := c.Read(make([]byte, 16)); err != nil {
			t.Fatal(err)
		}
		_ = c.Close() // cut off in the middle of the body
	}
	began := time.Now()
	metrics := s.get("/metrics")
	took := time.Since(began)
	names := strings.Count(metrics, "nixie_queue_oldest_ready_seconds{")
	t.Logf("10,000 queues: /metrics has %d KiB and %d queues, after %s", len(metrics)>>10, names, took.Round(time.Millisecond))
	if names != 201 || !strings.Contains(metrics, `queue="other"`) {
		t.Errorf("%d queues have a label, want 200 and other", names)
	}
	if stats := s.get("/stats.json"); strings.Count(stats, `"queued":1,`) != queues {
		t.Errorf("stats of %d queues", strings.Count(stats, `"queued":1,`))
	}
	s.stop()
}

// What variables of OpenTelemetry ask for is sent, and the last of it before the store is closed.
func TestRunSendsByOTLP(t *testing.T) {
	t.Parallel()
	var traces, metrics atomic.Int64
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/v1/traces":
			traces.Add(int64(strings.Count(string(body), "process j")))
		case "/v1/metrics":
			metrics.Add(int64(strings.Count(string(body), "dlq.queue.depth")))
		}
	}))
	defer collector.Close()
	d := newWorkspace(t)
	d.env = append(d.env, "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL)
	d.write("items.txt", "1\n2\n3\n")
	if got := d.nixie(0, "run", "items.txt", "--job", "j", "--", "true"); strings.Contains(got.err, "nixie: ") {
		t.Error(got.err)
	}
	if traces.Load() != 3 || metrics.Load() == 0 {
		t.Errorf("%d process spans, %d metrics of depth", traces.Load(), metrics.Load())
	}
}

// An idle nixie serve is ready soon and small.
func TestServeIsSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("measures a process")
	}
	d := newWorkspace(t)
	d.nixie(0, "enqueue", "mail", "--body", "x")
	began := time.Now()
	s := d.serve()
	s.get("/readyz")
	ready := time.Since(began)
	s.get("/metrics")
	kib := 0
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kib); err == nil {
			break
		}
	}
	t.Logf("nixie serve is ready after %s, and has %d MiB resident", ready.Round(time.Millisecond), kib>>10)
	if kib == 0 || proof.IsDeep() && (ready > 300*time.Millisecond || kib > 40<<10) { // a loaded machine measures badly
		t.Errorf("ready after %s with %d KiB, want 300ms and 40 MiB", ready, kib)
	}
	s.stop()
}
