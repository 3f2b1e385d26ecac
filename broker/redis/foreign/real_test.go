package foreign

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nixie-go/nixie"
)

// libraries are the job queues themselves, each with the set of its dead jobs and what a letter
// must tell of one. Their failed job is adopted, sent back, and run by a worker of that very
// system.
var libraries = []struct {
	name, format  string
	probe         []string // a command that succeeds where the library is
	enqueue, work []string
	dead          string
	want          string // type of the job, error, its text
	attempts      int
	history       int
}{
	{"Sidekiq", "sidekiq", []string{"ruby", "-e", "require 'sidekiq'"}, []string{"ruby", "jobs.rb", "enqueue"},
		[]string{"sidekiq", "-r", "./jobs.rb", "-q", "mails", "-c", "1", "-t", "1"}, "dead", "Mail ArgumentError boom 7", 1, 1},
	{"BullMQ", "bullmq", []string{"node", "-e", "require('bullmq')"}, []string{"node", "jobs.js", "bullmq", "enqueue"},
		[]string{"node", "jobs.js", "bullmq", "work"}, "bull:mails:failed", "mail TypeError boom 7", 2, 1},
	{"Bull 4", "bullmq", []string{"node", "-e", "require('bull')"}, []string{"node", "jobs.js", "bull", "enqueue"},
		[]string{"node", "jobs.js", "bull", "work"}, "bull:mails:failed", "mail TypeError boom 7", 2, 1},
	{"RQ", "rq", []string{"python", "-c", "import rq"}, []string{"python", "jobs_rq.py", "enqueue"},
		[]string{"python", "jobs_rq.py", "work"}, "rq:failed:mails", "jobs_rq.mail ValueError boom 7", 0, 1},
	{"Dramatiq", "dramatiq", []string{"python", "-c", "import dramatiq"}, []string{"python", "jobs_dramatiq.py", "enqueue"},
		[]string{"python", "jobs_dramatiq.py", "work"}, "dramatiq:mails.XQ", "mail ValueError boom 7", 2, 1},
	{"Celery", "celery", []string{"python", "-c", "import celery"}, []string{"python", "jobs_celery.py", "enqueue"},
		[]string{"python", "jobs_celery.py", "work"}, "", "mail ValueError boom 7", 1, 1},
}

// jobQueues returns the folder where make test-servers with NIXIE_TEST_JOBQUEUES=1 puts libraries.
func jobQueues(t *testing.T) string {
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skip("no folder for caches: ", err)
	}
	return filepath.Join(cache, "nixie-jobqueues")
}

// A job that died in the real thing is adopted with what is known of it, once. It goes back, leaves
// its dead set, and a worker of that very system runs it.
func TestRealJobQueues(t *testing.T) {
	for _, l := range libraries {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			home := jobQueues(t)
			c, url := database(t)
			command := func(args []string) *exec.Cmd {
				name := args[0]
				if name == "python" {
					name = filepath.Join(home, "venv", "bin", "python")
				}
				cmd := exec.CommandContext(t.Context(), name, args[1:]...)
				cmd.Dir = "testdata"
				cmd.Env = append(os.Environ(), "REDIS_URL="+url, "NODE_PATH="+filepath.Join(home, "node_modules"),
					"PYTHONDONTWRITEBYTECODE=1")
				return cmd
			}
			if err := command(l.probe).Run(); err != nil {
				t.Skipf("no %s: NIXIE_TEST_JOBQUEUES=1 make test-servers installs it, if you want this test", l.name)
			}
			working := func(what string, until func(func() bool), done func() bool) {
				var said bytes.Buffer
				cmd := command(l.work)
				cmd.Stdout, cmd.Stderr = &said, &said
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				defer func() {
					_ = cmd.Process.Kill() // it may have ended
					_ = cmd.Wait()
					if t.Failed() {
						t.Logf("%s: %s", what, said.String())
					}
				}()
				until(done)
			}
			cfg := Config{Format: l.format}
			dead := func() bool { return len(readAll(t, c, cfg)) == 1 }
			if out, err := command(l.enqueue).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			working("the job that fails", func(is func() bool) { until(t, "its death", is) }, dead)
			o := newOffice(t)
			if n, again := o.adopt(c, cfg), o.adopt(c, cfg); n != 1 || again != 0 {
				t.Fatalf("%d adopted, then %d", n, again)
			}
			letter := o.letters()[0]
			f := letter.History[len(letter.History)-1]
			got := strings.Join([]string{letter.Message.Header(headerType), f.Type, f.Text}, " ")
			if m := &letter.Message; got != l.want || m.Attempts != l.attempts || len(letter.History) != l.history ||
				m.Queue != "mails" || f.Stack == "" || m.EnqueuedAt.After(letter.DiedAt) || m.Header(headerDamage) != "" {
				t.Errorf("%q, want %q, %d attempts, %d failures: %+v", got, l.want, letter.Message.Attempts, len(letter.History),
					letter)
			}
			o.mustRedrive(c, cfg, letter)
			o.mustRedrive(c, cfg, letter) // a repeat whose answer was lost
			if left := readAll(t, c, cfg); len(left) != 0 {
				t.Errorf("%d are dead", len(left))
			}
			if err := c.Set(t.Context(), "fixed", "1", 0).Err(); err != nil {
				t.Fatal(err)
			}
			working("the job that runs", func(is func() bool) { until(t, "its end", is) },
				func() bool { return c.LLen(t.Context(), "done").Val() == 1 })
			if got := c.LRange(t.Context(), "done", 0, -1).Val(); len(got) != 1 || got[0] != "7" {
				t.Errorf("done: %q", got)
			}
			letter.Message.Redrives++ // another redrive, of a job that is gone
			if err := o.redrive(c, cfg, nil, letter)[0]; nixie.CodeOf(err) != nixie.CodeConflict {
				t.Errorf("a job that is not dead goes: %v", err)
			}
		})
	}
}
