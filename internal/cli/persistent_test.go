//go:build linux

package cli_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nixie-go/nixie/internal/proof"
)

// prelude makes a worker of the line handle(m, say), which answers message m.
const prelude = `import json, os, signal, sys, time
def say(**answer):
    os.write(1, (json.dumps(answer) + "\n").encode())
def note(text):
    with open("ledger", "a") as f:
        f.write(text + "\n")
def messages():
    for line in sys.stdin:
        yield json.loads(line)
`

// loop is a worker that calls handle for each message.
const loop = prelude + `
def main(handle):
    note("start")
    say(ready=True)
    for m in messages():
        handle(m)
`

// firstAttempt buries what was tried before.
const firstAttempt = loop + `main(lambda m: say(id=m["id"], outcome="complete" if m["attempt"] == 1 else "bury"))`

// python returns the interpreter of the machine; there is none of the environment that a test
// might be run in. A test is skipped without it, and fails with NIXIE_TEST_REQUIRE set.
func python(t *testing.T) string {
	t.Helper()
	const program = "/usr/bin/python3"
	if _, err := exec.LookPath(program); err != nil {
		if os.Getenv("NIXIE_TEST_REQUIRE") != "" {
			t.Fatalf("%v: run make test-servers", err)
		}
		t.Skip(err)
	}
	return program
}

// persistent runs a worker on queue q until it is empty and returns what was counted.
func (d *workspace) persistent(code int, worker string, flags ...string) (worked, done) {
	d.t.Helper()
	d.write("worker.py", worker)
	args := append([]string{"work", "q", "--persistent", "-p", "1", "--until-empty", "--max-attempts", "1", "-o", "json"}, flags...)
	got := d.nixie(code, append(args, "--", python(d.t), "-IS", "worker.py")...)
	if code == 1 && got.out == "" {
		return worked{}, got
	}
	return d.worked(got.out), got
}

// enqueue adds a message for each body.
func (d *workspace) enqueue(bodies ...string) {
	d.t.Helper()
	var list strings.Builder
	for _, body := range bodies {
		line, err := json.Marshal(map[string]string{"body": body})
		if err != nil {
			d.t.Fatal(err)
		}
		list.Write(append(line, '\n'))
	}
	d.write("list.jsonl", list.String())
	d.nixie(0, "enqueue", "q", "--jsonl", "list.jsonl")
}

// badWorker keeps to the protocol but for the message bad.
type badWorker struct {
	name, does string // for that message
	dead       int
	reason     string // of its letter; empty: any
	says       string // in its letter, or in what Nixie says
	starts     int    // of the worker
	flags      []string
}

func badWorkers() []badWorker {
	short := []string{"--timeout", "300ms"}
	return []badWorker{
		{"answers twice", `os.write(1, 2 * (json.dumps({"id": m["id"]}) + "\n").encode())`, 0, "", "costs no message", 2, nil},
		{"answers twice late", `say(id=m["id"]); late.append(m["id"])`, 0, "", "it names another message", 2, nil},
		{"answers for another message", `say(id="x")`, 0, "", `"{\"id\": \"x\"}"`, 2, nil},
		{"answers for another in the middle", `say(id=m["id"], progress=True); say(id="x")`,
			1, "validation", "it names another message", 2, nil},
		{"answers with 100 MB", `os.write(1, b'{"id":"' + b"x" * (100 << 20))`, 1, "validation", "it has more than 20971520 bytes", 2, nil},
		{"does not answer", `time.sleep(1000)`, 1, "timeout", "timed out after 300ms", 2, short},
		{"does not answer nor end", `signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1000)`,
			1, "timeout", "timed out after 300ms", 2,
			short},
		{"answers too late", `signal.signal(signal.SIGTERM, lambda *_: say(id=m["id"])); time.sleep(0.4); sys.exit()`, 1, "timeout",
			"timed out after 300ms", 2, short},
		{"half a line and its end", `os.write(1, b'{"id":'); sys.exit()`,
			1, "command-failed", "the output ended before the end of the line", 2, nil},
		{"half a line and silence", `os.write(1, b'{"id":'); time.sleep(1000)`, 1, "timeout", "timed out", 2, short},
		{"ends without an answer", `sys.exit()`, 1, "command-failed", "ended with exit status 0 and did not answer", 2, nil},
		{"fails", `sys.exit("no such customer")`, 1, "command-failed", "no such customer", 2, nil},
		{"fails for ever", `sys.exit(65)`, 1, "validation", "exit status 65", 2, nil},
		{"is killed", `os.kill(os.getpid(), signal.SIGSEGV)`, 1, "command-failed", "killed by signal 11", 2, nil},
		{"closes its output", `os.close(1); time.sleep(1000)`, 1, "", "killed by signal 9", 2, nil},
		{"UTF-16", `os.write(1, (json.dumps({"id": m["id"]}) + "\n").encode("utf-16"))`, 1, "validation", "it is not valid UTF-8", 2, nil},
		{"prints", `print("hello", flush=True)`, 1, "validation", `the line: "hello"`, 2, nil},
		{"an unknown field", `say(id=m["id"], status="ok")`, 1, "validation", `field "status" is unknown`, 2, nil},
		{"an unknown outcome", `say(id=m["id"], outcome="done")`, 1, "validation", `field outcome is "done"`, 2, nil},
		{"no id", `say(outcome="complete")`, 1, "validation", "field id is missing", 2, nil},
		{"a step without a name", `say(id=m["id"], progress=True, steps=[""])`, 1, "validation", "empty name", 2, nil},
		{"then to nowhere", `say(id=m["id"], then=[{"body": "x"}])`, 1, "validation", "queue is empty", 2, nil},
		{"101 messages follow", `say(id=m["id"], then=[{"queue": "r"}] * 101)`,
			1, "validation", "field then has 101 messages, the limit is 100", 2, nil},
		{"then after a failure", `say(id=m["id"], outcome="retry", then=[{"queue": "r"}])`,
			1, "validation", "then goes with outcome complete", 2, nil},
		{"ready again", `say(ready=True)`, 1, "validation", `field "ready" is unknown`, 2, nil},
		{"reads nothing of what follows", `say(id=m["id"]); sys.stdin.close(); os.close(0); time.sleep(1000)`, 0, "", "", 2, nil},
		{"ends after its answer", `say(id=m["id"]); sys.exit()`, 0, "", "", 2, nil},
		{"leaves a child with its pipes", `os.fork() or (os.setsid(), time.sleep(1000)); say(id=m["id"])`, 0, "", "", 1, nil},
		{"the verdict of a failure", `print("log of bad", file=sys.stderr, flush=True); ` +
			`say(id=m["id"], outcome="bury", message="no customer", reason="validation")`, 1, "validation", "no customer", 1, nil},
	}
}

// TestPersistentBadWorkers has a worker that keeps to the protocol but for one message, bad, among
// good ones. What it does costs that message an attempt, or none, and never the others.
func TestPersistentBadWorkers(t *testing.T) {
	t.Parallel()
	for _, c := range badWorkers() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newWorkspace(t)
			d.enqueue("good 1", "good 2", "bad", "good 3", "good 4")
			worker := loop + `
late = []
def handle(m):
    while late:
        say(id=late.pop())
    if m["body"] == "bad":
        ` + c.does + `
    else:
        print("log of good", file=sys.stderr, flush=True); note(m["body"]); say(id=m["id"])
main(handle)
`
			if c.name == "answers for another message" { // else it would do so for ever
				worker = strings.Replace(worker, `== "bad"`, `== "bad" and not os.path.exists("once") and not os.mkdir("once")`, 1)
			}
			code := 0
			if c.dead > 0 {
				code = 5
			}
			got, end := d.persistent(code, worker, c.flags...)
			ran := times(d.ledger("ledger"))
			if got.Succeeded != 5-c.dead || got.Dead != c.dead || ran["start"] != c.starts {
				t.Errorf("%+v, the worker started %d times, want %d\n%s", got, ran["start"], c.starts, end.err)
			}
			for n := 1; n <= 4; n++ {
				if good := fmt.Sprint("good ", n); ran[good] != 1 && c.name != "answers twice late" {
					t.Errorf("%s ran %d times", good, ran[good])
				}
			}
			where := end.err
			for _, l := range d.letters("") {
				l = d.letter(l.ID)
				for _, log := range l.History[0].Attachments {
					if strings.Contains(log.Text, "log of good") {
						t.Errorf("the letter has the log of another message: %s", log.Text)
					}
				}
				if where = l.History[0].Message; l.Message.Body != "bad" || c.reason != "" && l.Reason != c.reason {
					t.Errorf("%s is dead with %s, want %s: %s", l.Message.Body, l.Reason, c.reason, where)
				}
			}
			if !strings.Contains(where, c.says) {
				t.Errorf("want %q in:\n%s", c.says, where)
			}
			d.verify()
		})
	}
}

// TestPersistentUseless: workers that never take a message end the work, and no message pays.
func TestPersistentUseless(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, worker, says string }{
		{"ends at once", `sys.exit("no module named orders")`, "no module named orders"},
		{"ends with 0", ``, "it ended before it wrote"},
		{"speaks before it is ready", `print("Starting", flush=True); say(ready=True); time.sleep(1000)`, `the line: "Starting"`},
		{"is ready in UTF-16", `os.write(1, '{"ready":true}\n'.encode("utf-16")); time.sleep(1000)`, "the first line has to be"},
		{"answers before a message", `say(ready=True); say(id="x"); time.sleep(1000)`, `\"id\": \"x\"`},
		{"closes its input", `say(ready=True); os.close(0); time.sleep(1000)`, "it read none"},
		{"ends when it is ready", `say(ready=True)`, "ended with exit status 0"},
		{"always answers for another", "say(ready=True)\nfor m in messages(): say(id=\"x\")", "it names another message"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newWorkspace(t)
			d.enqueue("1", "2", "3")
			_, end := d.persistent(1, prelude+"note(\"start\")\n"+c.worker, "-p", "2")
			if !strings.Contains(end.err, "processes in a row took no message") || !strings.Contains(end.err, c.says) {
				t.Errorf("want %q in:\n%s", c.says, end.err)
			}
			if starts := len(d.ledger("ledger")); starts < 5 || starts > 6 {
				t.Errorf("%d processes started", starts)
			}
			if got, _ := d.persistent(0, firstAttempt); got.Succeeded != 3 {
				t.Errorf("afterwards %+v", got)
			}
			d.noProcess()
		})
	}
	d := newWorkspace(t)
	d.enqueue("1")
	if got := d.nixie(2, "work", "q", "--persistent", "--", "./worker", "{id}"); !strings.Contains(got.err, "{{id}}") {
		t.Error(got.err)
	}
	got := d.nixie(2, "run", "list.jsonl", "--persistent", "--step", "shell: true", "--step", "shell: false")
	if !strings.Contains(got.err, "persistent is for one command") {
		t.Error(got.err)
	}
}

// TestPersistentLines: what a process gets, and what becomes of its answer.
func TestPersistentLines(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	big := strings.Repeat("€", 300_000)
	d.write("list.jsonl", `{"body":"plain","type":"t","key":"k","stream":"s","headers":{"a":"b"}}
{"body_base64":"/wD/"}
{"body":""}
{"body":"`+big+`"}
{"body":"two\nlines\u0000\u2028"}
`)
	d.nixie(0, "enqueue", "q", "--jsonl", "list.jsonl")
	d.write("worker.py", loop+`
def handle(m):
    note(json.dumps(m))
    print("the log of", m["id"], file=sys.stderr, flush=True)
    say(id=m["id"], progress=True, steps=["looked"])
    say(id=m["id"], steps=["done"], result=m["body"] and m["body"][:5], then=[{"queue": "next", "body": m["body"], "key": m["key"]}])
main(handle)
`)
	end := d.nixie(0, "work", "q", "--persistent", "-p", "1", "--until-empty", "--timeout", "1h", "--", python(t), "-IS", "worker.py")
	if want := "plain€€€€€two\nl"; end.out != want {
		t.Errorf("the results are %q, want %q", end.out, want)
	}
	var seen []map[string]any
	for _, line := range d.ledger("ledger")[1:] {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		if _, err := time.Parse(time.RFC3339Nano, fmt.Sprint(m["deadline"])); err != nil {
			t.Error(err)
		}
		if !strings.Contains(end.err, fmt.Sprint("the log of ", m["id"])) {
			t.Errorf("no log of %s", m["id"])
		}
		for _, key := range []string{"id", "deadline"} {
			delete(m, key)
		}
		seen = append(seen, m)
	}
	empty := map[string]any{"queue": "q", "type": "", "key": "", "stream": "", "attempt": 1., "generation": 1., "redrives": 0., "lease": 1.,
		"steps": []any{}, "headers": []any{}, "body": "", "body_base64": nil, "folder": ""}
	for i, fields := range []map[string]any{
		{"type": "t", "key": "k", "stream": "s", "body": "plain", "headers": []any{map[string]any{"name": "a", "value": "b"}}},
		{"body": nil, "body_base64": "/wD/"}, {}, {"body": big}, {"body": "two\nlines\x00\u2028"},
	} {
		for key, value := range empty {
			if other, has := fields[key]; has {
				value = other
			}
			if want, got := fmt.Sprintf("%#v", value), fmt.Sprintf("%#v", seen[i][key]); got != want {
				t.Errorf("message %d: %s is %.100s, want %.100s", i, key, got, want)
			}
		}
		if len(seen[i]) != len(empty) {
			t.Errorf("message %d has %d fields, want %d", i, len(seen[i]), len(empty))
		}
	}
	next := d.nixie(0, "queue", "stats", "next", "-o", "json").out
	if !strings.Contains(next, `"ready":5`) && !strings.Contains(next, `"ready": 5`) {
		t.Errorf("what follows: %s", next)
	}
	d.verify()
}

// TestPersistentSteps: a step that stays among commands. What follows its answer follows the
// success of all, once: also if a later step fails, and both run again in the same claim.
func TestPersistentSteps(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	d.write("items.txt", "a\nb\n")
	d.write("worker.py", loop+`main(lambda m: say(id=m["id"], then=[{"queue": "next", "body": m["key"]}]))`)
	got := d.run(0, "items.txt", "--job", "j", "-p", "1", "--in-claim", "attempts=2 base=1ms", "--max-attempts", "1",
		"--no-output", "--step", "persistent exec: "+python(t)+" -IS worker.py", "--step", "shell: [ -e once ] || { touch once; exit 75; }")
	if starts := len(d.ledger("ledger")); got.Succeeded != 2 || got.Attempts != 3 || starts != 1 {
		t.Errorf("%d processes: %+v", starts, got)
	}
	if next := d.nixie(0, "queue", "stats", "next", "-o", "json").out; !strings.Contains(next, `"ready": 2`) {
		t.Errorf("what follows: %s", next)
	}
}

// TestPersistentStops: a process that has a message ends it first. Then it gets the end of its
// input, and SIGTERM if that is not enough. What has to end in the middle costs its message
// nothing.
func TestPersistentStops(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, says string // the end of the ledger
		signals    int
		flags      []string
		ready      int
	}{
		{"after its message", "1 done, end of input", 1, nil, 0},
		{"in the middle", "1, told to end", 2, nil, 1},
		{"at once", "1, told to end", 1, []string{"--grace", "0"}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newWorkspace(t)
			d.enqueue("1")
			d.write("worker.py", loop+`
def told(*_):
    note("told to end")
    sys.exit(3)
def handle(m):
    note(m["body"])
    while not os.path.exists("go"):
        time.sleep(0.01)
    note(m["body"] + " done")
    say(id=m["id"])
signal.signal(signal.SIGTERM, told)
main(handle)
note("end of input")
`)
			args := append([]string{"work", "q", "--persistent", "-p", "2", "-o", "json"}, c.flags...)
			cmd := d.running(2, append(args, "--", python(t), "-IS", "worker.py")...)
			for range c.signals {
				d.signal(cmd, syscall.SIGTERM)
				if !within(5*time.Second, func() bool { return strings.Contains(d.read("err"), "may finish") }) {
					t.Fatal("the signal is not noticed")
				}
			}
			if c.ready == 0 {
				d.write("go", "")
			}
			if code := ended(t, cmd); code != 0 {
				t.Errorf("exit %d\n%s", code, d.read("err"))
			}
			got := d.worked(d.read("out"))
			ledger := strings.Join(d.ledger("ledger"), ", ")
			if !strings.HasSuffix(ledger, c.says) || got.Ready != c.ready || got.Dead != 0 {
				t.Errorf("%s: %+v\n%s", ledger, got, d.read("err"))
			}
			d.noProcess()
			if c.ready == 1 {
				if got, _ := d.persistent(0, firstAttempt); got.Succeeded != 1 {
					t.Errorf("afterwards %+v", got)
				}
			}
			d.verify()
		})
	}
}

// TestPersistentKilledAtAnyMoment kills Nixie with kill -9, and some messages kill their process.
// Nothing is lost or dead. Only what ran at a kill of Nixie may run again, and what killed its own
// process.
func TestPersistentKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	proof.Run(t, "persistent-kills", func(t *testing.T, seed uint64) int {
		const messages, kills, between = 300, 2, 60
		rng := rand.New(rand.NewPCG(seed, 0))
		parallel := 1 + rng.IntN(4)
		d := newWorkspace(t)
		var bodies []string
		for i := range messages {
			bodies = append(bodies, fmt.Sprint(i))
		}
		d.enqueue(bodies...)
		d.write("worker.py", prelude+`
say(ready=True)
for m in messages():
    note(m["body"])
    if int(m["body"]) % 29 == 7 and m["attempt"] == 1:
        os.kill(os.getpid(), 9)
    say(id=m["id"])
`)
		args := []string{"work", "q", "--persistent", "-p", fmt.Sprint(parallel), "--until-empty", "--max-attempts", "2", "--backoff", "0",
			"-o", "json", "--", python(t), "-IS", "worker.py"}
		for range kills {
			d.killAfter(rng.IntN(between), args)
			d.verify()
		}
		got := d.worked(d.nixie(0, args...).out)
		d.verify()
		d.noProcess()
		suicides, again := 0, 0
		ran := times(d.ledger("ledger"))
		for i := range messages {
			again += ran[fmt.Sprint(i)] - 1
			if i%29 == 7 {
				suicides++
			}
		}
		if letters := d.letters(""); len(ran) != messages || again < suicides || again > suicides+kills*parallel || len(letters) > 0 {
			t.Errorf("%d messages ran, %d times more than once, %d killed their process, %d are dead after %d kills of %d at a time: %+v",
				len(ran), again, suicides, len(letters), kills, parallel, got)
		}
		return kills
	})
}

// TestPersistentConvicts: a message that kills Nixie is found and convicted, and no other one is.
func TestPersistentConvicts(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	d.enqueue("1", "2", "3", "killer", "4", "5", "6")
	d.write("worker.py", prelude+`
say(ready=True)
for m in messages():
    if m["body"] == "killer":
        os.kill(os.getppid(), 9)
        time.sleep(1000)
    say(id=m["id"])
`)
	kills := 0
	for range 10 {
		got := d.finish(d.command("nixie", "work", "q", "--persistent", "-p", "3", "--until-empty", "--max-attempts", "1",
			"--max-crashes", "2", "-o", "json", "--", python(t), "-IS", "worker.py"))
		if got.code >= 0 {
			break
		}
		kills++
	}
	letters := d.letters("")
	if len(letters) != 1 || letters[0].Cause != "poison" || d.letter(letters[0].ID).Message.Body != "killer" {
		t.Fatalf("%d kills: %+v", kills, letters)
	}
	if stats := d.nixie(0, "queue", "stats", "q", "-o", "json").out; !strings.Contains(stats, `"succeeded": 6`) {
		t.Error(stats)
	}
	d.noProcess()
	d.verify()
}
