//go:build unix

package rabbitmq_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// queueOfTasks is a library that keeps its tasks in RabbitMQ, and what a letter tells of one that
// died.
type queueOfTasks struct {
	name, module, script string
	dead, source         string
	task, failure        string
	attempts             int
}

// TestNativeTasks lets libraries themselves make dead letters. Each is adopted, tells its task, and
// is sent back as it was: it runs, and so does what comes after it in its chain.
func TestNativeTasks(t *testing.T) {
	for _, q := range []queueOfTasks{
		{"Dramatiq", "pika, dramatiq", "dramatiq_tasks.py", "mails.XQ", "mails", "mail", "handler ValueError boom 7", 2},
		{"Celery", "celery", "celery_tasks.py", "tasks.dlq", "tasks", "mail", "handler  rejected by a consumer of tasks", 2},
	} {
		t.Run(q.name, func(t *testing.T) {
			r := actual(t)
			w := newTaskWorker(t, r, &q)
			if q.dead == "tasks.dlq" {
				r.declareAs(q.dead, nil)
			}
			w.run("enqueue")
			w.working("a dead letter", func() bool { return r.lies(q.dead) == 1 })
			o := newOffice(t)
			letters := o.adopt(r.on(q.dead))
			if len(letters) != 1 {
				t.Fatalf("%d letters", len(letters))
			}
			l := &letters[0]
			f := l.History[0]
			if got := strings.Join([]string{string(l.Reason), f.Type, f.Text}, " "); got != q.failure || l.Message.Queue != q.source ||
				l.Message.Attempts != q.attempts || !has(f.Context, "x-death-task", q.task) {
				t.Errorf("%s: %q of %q after %d attempts: %q", q.name, got, l.Message.Queue, l.Message.Attempts, f.Context)
			}
			if err := os.WriteFile(w.fixed, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			o.back(r.at, "")
			w.working("its end", func() bool { return strings.Count(w.done(), "\n") >= 2 })
			if got := w.done(); got != "mail 7\nafter\n" {
				t.Errorf("done: %q", got)
			}
		})
	}
}

func has(context []string, name, value string) bool {
	for _, line := range context {
		if strings.HasPrefix(line, name) && strings.HasSuffix(line, value) {
			return true
		}
	}
	return false
}

// lies counts what lies in a queue; 0 if it is not there yet.
func (r *raw) lies(queue string) int {
	ch, err := r.conn.Channel()
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = ch.Close() }() // the server may have closed it
	q, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	if err != nil {
		return 0
	}
	return q.Messages
}

// taskWorker runs a library.
type taskWorker struct {
	t               *testing.T
	q               *queueOfTasks
	python          string
	fixed, finished string
	env             []string
}

func newTaskWorker(t *testing.T, r *raw, q *queueOfTasks) *taskWorker {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skip("no folder for caches: ", err)
	}
	folder := t.TempDir()
	w := &taskWorker{t: t, q: q, python: filepath.Join(cache, "nixie-jobqueues", "venv", "bin", "python"),
		fixed: filepath.Join(folder, "fixed"), finished: filepath.Join(folder, "done")}
	w.env = append(os.Environ(), "AMQP_URL=amqp://guest:guest@"+r.at.Hosts[0]+"/", "FIXED="+w.fixed, "DONE="+w.finished,
		"PYTHONDONTWRITEBYTECODE=1")
	if err := exec.CommandContext(t.Context(), w.python, "-c", "import "+q.module).Run(); err != nil {
		why := "no " + q.name + ": NIXIE_TEST_JOBQUEUES=1 make test-servers installs it"
		if os.Getenv("NIXIE_TEST_REQUIRE") != "" && os.Getenv("NIXIE_TEST_JOBQUEUES") != "" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	return w
}

func (w *taskWorker) command(act string) *exec.Cmd {
	cmd := exec.CommandContext(context.WithoutCancel(w.t.Context()), w.python, w.q.script, act)
	cmd.Dir, cmd.Env = "testdata", w.env
	return cmd
}

func (w *taskWorker) run(act string) {
	w.t.Helper()
	if out, err := w.command(act).CombinedOutput(); err != nil {
		w.t.Fatalf("%s: %v: %s", act, err, out)
	}
}

// working runs a worker of the library until something has happened.
func (w *taskWorker) working(what string, is func() bool) {
	w.t.Helper()
	cmd := w.command("work")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
		if w.t.Failed() {
			w.t.Logf("%s: %s", what, said.String())
		}
	}()
	(&raw{t: w.t}).until(what, is)
}

func (w *taskWorker) done() string {
	text, _ := os.ReadFile(w.finished) // it may not be there yet
	return string(text)
}
