//go:build linux

package workflow_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/command"
	"github.com/nixie-go/nixie/internal/items"
	"github.com/nixie-go/nixie/internal/runner"
	"github.com/nixie-go/nixie/internal/workflow"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
)

func TestMain(m *testing.M) {
	if command.GuardMain() {
		return
	}
	os.Exit(m.Run())
}

// tree is a git repository in which the steps of one item run.
type tree struct{ dir, around string }

func (p *tree) Dir() string        { return p.dir }
func (p *tree) Environ() []string  { return environ(p.around) }
func (p *tree) ItemFile() string   { return filepath.Join(p.around, "item") }
func (p *tree) LogFile() string    { return filepath.Join(p.around, "log") }
func (p *tree) ResultFile() string { return filepath.Join(p.around, "result") }

func (p *tree) Check(context.Context) error            { return nil }
func (p *tree) End(_ context.Context, err error) error { return err }
func (p *tree) Head(context.Context) (string, error)   { return p.git("rev-parse", "HEAD") }
func (p *tree) Committed(ctx context.Context, since string) error {
	head, err := p.Head(ctx)
	if err == nil && head == since {
		err = nixie.WithReason(fmt.Errorf("no commit"), nixie.ReasonNoCommit)
	}
	return err
}

func environ(home string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=ann", "GIT_AUTHOR_EMAIL=a@b",
		"GIT_COMMITTER_NAME=ann", "GIT_COMMITTER_EMAIL=a@b"}
}

func (p *tree) git(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = p.dir, p.Environ()
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// job runs steps for one item and tells what came of it.
type job struct {
	t      *testing.T
	tree   *tree
	env    []command.Field
	whole  time.Duration
	given  map[string]json.RawMessage
	kept   map[string]json.RawMessage
	warned []string
	mu     sync.Mutex
	policy policy.Document
}

// outcome tells what came of an item: the text of its failure, and the files of its worktree.
type outcome struct {
	failed  string
	reason  nixie.Reason
	step    string
	context []string
	log     string
	files   map[string]string
	commits int
}

func newJob(t *testing.T) *job {
	t.Helper()
	around := t.TempDir()
	j := &job{t: t, tree: &tree{filepath.Join(around, "tree"), around}}
	must(t, os.MkdirAll(filepath.Join(j.tree.dir, "sub"), 0o700))
	must(t, os.WriteFile(filepath.Join(j.tree.dir, "sub", "file"), []byte("old\n"), 0o600))
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"commit", "-qm", "first"}} {
		if out, err := j.tree.git(args...); err != nil {
			t.Fatal(out, err)
		}
	}
	return j
}

// run runs steps for an item.
func (j *job) run(steps []command.Step, item string) outcome {
	j.t.Helper()
	st := memory.New(memory.Options{})
	list := filepath.Join(j.tree.around, "items.jsonl")
	must(j.t, os.WriteFile(list, []byte(item+"\n"), 0o600))
	reader, err := items.Open(items.Options{Path: list, Format: items.JSONL})
	must(j.t, err)
	defer reader.Close() //nolint:errcheck // it was only read
	_, err = reader.Check()
	must(j.t, err)
	doc := j.policy
	if doc.String() == "" {
		doc, err = policy.ParseDocument("max-attempts=1")
		must(j.t, err)
	}
	r, err := runner.New(runner.Config{
		Job: "j", Steps: steps, Parallel: 1, Policy: doc, StateFolder: filepath.Join(j.tree.around, "state"), Owner: "o", Clock: time.Now,
		Env: j.env, Whole: j.whole,
		Workplace: func(context.Context, *nixie.Delivery) (runner.Workplace, error) { return j.tree, nil },
		Values:    func(context.Context, *nixie.Delivery) (map[string]json.RawMessage, error) { return j.given, nil },
		Keep: func(_ context.Context, _ *nixie.Delivery, made map[string]json.RawMessage) error {
			j.kept = made
			return nil
		},
		Warn: func(format string, args ...any) {
			j.mu.Lock()
			defer j.mu.Unlock()
			j.warned = append(j.warned, fmt.Sprintf(format, args...))
		},
	})
	must(j.t, err)
	r.Use(st)
	_, err = r.Intake(j.t.Context(), reader, func(runner.Leftovers) error { return nil })
	must(j.t, err)
	_, err = r.Run(j.t.Context())
	must(j.t, err)
	return j.outcome(st)
}

// outcome looks what came of the item.
func (j *job) outcome(st *memory.Store) outcome {
	j.t.Helper()
	found := outcome{files: map[string]string{}}
	letters, _, err := st.Letters(j.t.Context(), nixie.Filter{}, store.Page{Limit: 1, Whole: true})
	must(j.t, err)
	for _, l := range letters {
		f := l.History[len(l.History)-1]
		found.failed, found.reason, found.step, found.context = f.Text, f.Reason, f.Step, f.Context
	}
	log, err := os.ReadFile(j.tree.LogFile())
	if err == nil {
		found.log = string(log)
	}
	must(j.t, filepath.WalkDir(j.tree.dir, func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Name() == ".git" && d.IsDir():
			return filepath.SkipDir
		}
		if d.Type().IsRegular() {
			text, err := os.ReadFile(path)
			found.files[strings.TrimPrefix(path, j.tree.dir+"/")] = string(text)
			return err
		}
		return nil
	}))
	count, err := j.tree.git("rev-list", "--count", "HEAD")
	must(j.t, err)
	_, err = fmt.Sscan(count, &found.commits)
	must(j.t, err)
	return found
}

// String writes an outcome in one line.
func (o outcome) String() string {
	var b strings.Builder
	if o.failed != "" {
		fmt.Fprintf(&b, "failed: %s (%s, in %s) ", o.failed, o.reason, o.step)
	}
	names := make([]string, 0, len(o.files))
	for name := range o.files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if name != "sub/file" || o.files[name] != "old\n" {
			fmt.Fprintf(&b, "%s=%q ", name, o.files[name])
		}
	}
	if o.commits != 1 {
		fmt.Fprintf(&b, "commits=%d ", o.commits)
	}
	if o.log != "" {
		fmt.Fprintf(&b, "log=%q", o.log)
	}
	return strings.TrimSpace(b.String())
}

// agent is a script that stands for an agent.
const agent = `printf 'agent: %s\n' "$1" >> said; printf 'log' >> "$NIXIE_LOG_FILE"` + "\n"

// outcomeOf tells what the steps of a file do for the item {"id": "a", "n": 3, "path": "x y"}.
func outcomeOf(t *testing.T, text string) string {
	t.Helper()
	f, err := workflow.Parse("w.yaml", []byte(text), "sh agent")
	if err != nil {
		return err.Error()
	}
	j := newJob(t)
	must(t, os.WriteFile(filepath.Join(j.tree.dir, "agent"), []byte(agent), 0o600))
	j.env = f.Env
	steps := f.Steps
	if f.Map != nil {
		steps, j.whole = f.Map.Steps, f.Map.Timeout
	}
	o := j.run(steps, `{"id":"a","n":3,"path":"x y","list":[1,{"k":"v"}],"none":null}`)
	delete(o.files, "agent")
	said := o.String()
	for _, w := range j.warned {
		said += " warned: " + w
	}
	return said
}
