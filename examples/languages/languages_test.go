// Package languages_test runs the examples in Python and Node.
package languages_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie/internal/cli"
	"github.com/nixie-go/nixie/internal/command"
	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/internal/proof/testservers"
)

var server testservers.Postgres

// TestMain lets the test binary be nixie, by the name under which it is started.
func TestMain(m *testing.M) {
	if command.GuardMain() {
		return
	}
	if filepath.Base(os.Args[0]) == "nixie" {
		os.Exit(cli.Main(os.Args[1:], cli.System()))
	}
	os.Exit(testservers.WithPostgres(m.Run, &server))
}

// shop is a folder with nixie, and a database.
type shop struct {
	t   *testing.T
	dir string
	env []string
}

func newShop(t *testing.T) *shop {
	server.Need(t)
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "nixie")); err != nil {
		t.Fatal(err)
	}
	clients, err := filepath.Abs("../../clients")
	if err != nil {
		t.Fatal(err)
	}
	password, _ := at.User.Password()
	host := at.Hostname()
	if folder := at.Query().Get("host"); folder != "" {
		host = folder
	}
	return &shop{t, dir, append(os.Environ(), "NIXIE_STORE="+server.URL, "XDG_STATE_HOME="+filepath.Join(dir, "state"), "NO_COLOR=1",
		"PYTHONPATH="+filepath.Join(clients, "python"), "NODE_PATH="+filepath.Join(clients, "node")+":/usr/share/nodejs",
		"PGHOST="+host, "PGPORT="+at.Port(), "PGUSER="+at.User.Username(), "PGPASSWORD="+password,
		"PGDATABASE="+strings.TrimPrefix(at.Path, "/"))}
}

// run runs a program that has to end with the code, and returns what it printed.
func (s *shop) run(code int, name string, args ...string) (out, errs string) {
	s.t.Helper()
	if name == "nixie" {
		name = filepath.Join(s.dir, name)
	}
	cmd := exec.CommandContext(s.t.Context(), name, args...)
	var o, e bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = s.env, &o, &e
	err := cmd.Run()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != code {
		s.t.Fatalf("%s %q: %v\n%s%s", name, args, err, o.String(), e.String())
	}
	return o.String(), e.String()
}

// enqueue takes orders by a script that calls the function in SQL. A store without the function
// gets those that the script commits by the command.
func (s *shop) enqueue(count int, queue string, script ...string) {
	s.t.Helper()
	db, err := pgx.Connect(s.t.Context(), server.URL)
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close(s.t.Context()) //nolint:errcheck // nothing is left to be done on it
	var there bool
	const ask = "select exists (select from pg_proc where pronamespace = 'nixie'::regnamespace and proname = 'enqueue')"
	if err := db.QueryRow(s.t.Context(), ask).Scan(&there); err != nil {
		s.t.Fatal(err)
	}
	if there {
		s.run(0, script[0], append(script[1:], queue, fmt.Sprint(count))...)
		return
	}
	var lines strings.Builder
	for n := range count {
		if n%10 != 9 {
			fmt.Fprintf(&lines, `{"body":{"n":%d}}`+"\n", n)
		}
	}
	list := filepath.Join(s.dir, "orders.jsonl")
	if err := os.WriteFile(list, []byte(lines.String()), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.run(0, "nixie", "enqueue", queue, "--jsonl", list)
}

// TestLanguages: scripts take orders in transactions of their own, of which each tenth is rolled
// back. Workers that stay charge what was committed, and each hundredth order is a dead letter.
func TestLanguages(t *testing.T) {
	proof.Run(t, "languages", func(t *testing.T, seed uint64) int {
		s := newShop(t)
		s.run(0, "nixie", "migrate", "up")
		count := proof.Count("languages")
		for _, c := range []struct {
			language      string
			enqueue, work []string
		}{
			{"Python", []string{testservers.Program(t, testservers.Python), "enqueue.py"}, []string{"/usr/bin/python3", "worker.py"}},
			{"Node", []string{testservers.Program(t, testservers.Node), "enqueue.js"}, []string{"node", "worker.js"}},
		} {
			queue := fmt.Sprint("orders-", c.language, seed)
			began := time.Now()
			s.enqueue(count, queue, c.enqueue...)
			enqueued := time.Since(began)
			began = time.Now()
			out, errs := s.run(5, "nixie", append([]string{"work", queue, "--persistent", "-p", "2", "--until-empty", "-o", "json", "--"},
				c.work...)...)
			took := time.Since(began)
			var got struct{ Attempts, Succeeded, Dead int }
			if err := json.Unmarshal([]byte(out), &got); err != nil {
				t.Fatal(err)
			}
			dead := count / 100
			if got.Dead != dead || got.Succeeded != count*9/10-dead || got.Attempts != count*9/10 {
				t.Errorf("%s: %+v of %d\n%s", c.language, got, count, errs)
			}
			letter, _ := s.run(0, "nixie", "dlq", "analyze", "--filter", "queue:"+queue)
			if !strings.Contains(letter, "order <n> has no card") {
				t.Errorf("%s: the letters are\n%s", c.language, letter)
			}
			t.Logf("%s: %d of %d committed in %s, %d charged and %d dead in %s (%.0f a second)", c.language, got.Attempts, count,
				enqueued.Round(time.Millisecond), got.Succeeded, got.Dead, took.Round(time.Millisecond),
				float64(got.Attempts)/took.Seconds())
		}
		return count
	})
}

// TestLambda: a handler(event, context) runs as it is, and what it returns is the result.
func TestLambda(t *testing.T) {
	s := newShop(t)
	s.env = append(s.env, "NIXIE_STORE=sqlite://"+filepath.Join(s.dir, "s.db"))
	s.run(0, "nixie", "enqueue", "q", "--body", `{"n": 7}`)
	testservers.Program(t, testservers.Python)
	out, errs := s.run(0, "nixie", "work", "q", "--persistent", "-p", "1", "--until-empty", "--",
		"/usr/bin/python3", "-m", "nixie", "app.handler")
	if out != `{"charged": 7}` || !strings.Contains(errs, "order 7 of request ") {
		t.Errorf("%q\n%s", out, errs)
	}
}

// TestClients: what a job prints, raises and returns reaches Nixie by both clients.
func TestClients(t *testing.T) {
	for _, c := range []struct{ program, name, source, stack string }{
		{testservers.Program(t, testservers.Python), "job.py", `
import os, nixie
@nixie.job
def charge(message):
    print("printed by", message.body)
    os.write(1, b"written to descriptor 1\n")
    if message.body == "breaks":
        return {}["card"]
    if message.body == "wait":
        raise nixie.Retry("the bank is away", after=3600, reason="throttled")
    if message.body == b"\xff":
        raise nixie.Bury("no text")
    message.progress("looked")
    message.then("receipts", {"of": message.key}, key="r")
    return {"charged": message.key}
@nixie.job(type="later")
def later(message):
    raise nixie.Release(after=3600)
nixie.run()
`, "KeyError: 'card'"},
		{testservers.Program(t, testservers.Node), "job.js", `
const nixie = require("nixie");
nixie.work(async (message) => {
  console.log("printed by", String(message.body));
  process.stdout.write("written to descriptor 1\n");
  if (message.body === "breaks") return message.card.number;
  if (message.body === "wait") throw nixie.retry("the bank is away", 3600, { reason: "throttled" });
  if (Buffer.isBuffer(message.body)) throw nixie.bury("no text");
  if (message.type === "later") throw nixie.release("", 3600);
  message.progress("looked");
  message.follow("receipts", { of: message.key }, { key: "r" });
  return { charged: message.key };
});
`, "TypeError: Cannot read properties of undefined"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShop(t)
			s.env = append(s.env, "NIXIE_STORE=sqlite://"+filepath.Join(s.dir, "s.db"))
			job, list := filepath.Join(s.dir, c.name), filepath.Join(s.dir, "list.jsonl")
			for name, text := range map[string]string{job: c.source, list: `{"body":"breaks"}
{"body":"wait"}
{"body_base64":"/w=="}
{"body":"later","type":"later"}
{"body":"good","key":"k"}
`} {
				if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			s.run(0, "nixie", "enqueue", "q", "--jsonl", list)
			out, errs := s.run(5, "nixie", "work", "q", "--persistent", "-p", "1", "--drain", "--max-attempts", "2", "--backoff", "0", "--",
				c.program, job)
			if compact := strings.ReplaceAll(out, " ", ""); compact != `{"charged":"k"}` {
				t.Errorf("the results are %q", out)
			}
			for _, want := range []string{"printed by good", "written to descriptor 1"} {
				if !strings.Contains(errs, want) {
					t.Errorf("%q is not in the log:\n%s", want, errs)
				}
			}
			letters, _ := s.run(0, "nixie", "dlq", "export")
			for _, want := range []string{c.stack, c.name, "no text"} {
				if !strings.Contains(letters, want) {
					t.Errorf("%q is in no letter:\n%s", want, letters)
				}
			}
			queues, _ := s.run(0, "nixie", "message", "list", "--all", "-o", "csv")
			for _, want := range []string{"the bank is away", "receipts,,r,"} {
				if !strings.Contains(queues, want) {
					t.Errorf("%q is not queued:\n%s", want, queues)
				}
			}
		})
	}
}
