package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/nixie-go/nixie"
)

// bench holds a user's repository and the state of jobs on it.
type bench struct {
	t           testing.TB
	repo, state string
}

func newBench(t testing.TB) *bench {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t, filepath.Join(root, "repo"), filepath.Join(root, "state")}
	b.must(os.MkdirAll(b.repo, 0o755), os.MkdirAll(b.state, 0o755))
	b.git(b.repo, "init", "--quiet", "--initial-branch", "main")
	b.write(b.repo, "readme", "one\ntwo\nthree\n")
	b.write(b.repo, "src/a/code", "a\n")
	b.write(b.repo, "src/b/code", "b\n")
	b.write(b.repo, ".gitignore", "*.o\n")
	b.commit(b.repo, "first")
	return b
}

func (b *bench) must(errs ...error) {
	b.t.Helper()
	if err := errors.Join(errs...); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) write(dir, name, text string) {
	b.t.Helper()
	name = filepath.Join(dir, name)
	// A child that another test forks meanwhile would hold the file open, and a program that is
	// open for writing cannot be run.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	b.must(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644))
}

// git runs the user's git with only these settings.
func (b *bench) git(dir string, args ...string) string {
	b.t.Helper()
	out, err := b.try(dir, args...)
	if err != nil {
		b.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return out
}

func (b *bench) try(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = dir, b.environ()
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (b *bench) environ() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Dir(b.repo), "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=ann", "GIT_AUTHOR_EMAIL=ann@desk", "GIT_COMMITTER_NAME=ann", "GIT_COMMITTER_EMAIL=ann@desk"}
}

func (b *bench) commit(dir, subject string) {
	b.t.Helper()
	b.git(dir, "add", "-A")
	b.git(dir, "commit", "--quiet", "-m", subject)
}

func (b *bench) config(change func(*Config)) Config {
	c := Config{Repo: b.repo, State: b.state, Job: "nightly", Parallel: 2, Environ: b.environ()}
	if change != nil {
		change(&c)
	}
	return c
}

func (b *bench) open(change func(*Config)) *Job {
	b.t.Helper()
	j, err := Open(b.t.Context(), b.config(change))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = j.Close() }) // some are closed before
	return j
}

// known finds the job by its files.
func (b *bench) known() *Known {
	b.t.Helper()
	k, err := Find(b.t.Context(), b.config(nil))
	b.must(err)
	return k
}

func (b *bench) attempt(j *Job, item string, lease int64) *Tree {
	b.t.Helper()
	t, err := j.Attempt(b.t.Context(), item, lease)
	if err != nil {
		b.t.Fatal(err)
	}
	return t
}

// work changes a file in an attempt and commits it.
func (b *bench) work(t *Tree, name, text string) {
	b.t.Helper()
	b.write(t.Path, name, text)
	b.commit(t.Path, "work on "+t.Item)
}

func (b *bench) merge(t *Tree) string {
	b.t.Helper()
	commit, err := t.Merge(b.t.Context(), "item "+t.Item, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return commit
}

func (b *bench) release(t *Tree) {
	b.t.Helper()
	t.Release()
}

// The branch of the job has one merge for each attempt that committed; the user's checkout is as it
// was until the job is delivered.
func TestAttemptsAreJoined(t *testing.T) {
	b := newBench(t)
	j := b.open(nil)
	before := b.git(b.repo, "rev-parse", "HEAD")
	first, second := b.attempt(j, "a", 1), b.attempt(j, "b", 1)
	if first.Path == second.Path {
		t.Fatalf("both have %s", first.Path)
	}
	b.work(first, "src/a/code", "A\n")
	b.work(second, "src/b/code", "B\n")
	b.merge(first)
	b.merge(second)
	b.release(first)
	b.release(second)
	if idle := b.attempt(j, "idle", 1); b.merge(idle) != "" {
		t.Error("an attempt without a commit was merged")
	}
	if now := b.git(b.repo, "rev-parse", "HEAD"); now != before || b.git(b.repo, "status", "--porcelain") != "" {
		t.Error("the checkout changed before it was asked for")
	}
	if n := b.git(b.repo, "rev-list", "--count", "--first-parent", before+".."+j.Branch()); n != "2" {
		t.Errorf("%s merges", n)
	}
	if who := b.git(b.repo, "log", "-1", "--format=%an %s", j.Branch()); who != "ann item b" {
		t.Errorf("the merge is %q", who)
	}
	if done, err := j.Delivered(t.Context()); err != nil || done {
		t.Errorf("delivered: %v %v", done, err)
	}
	b.must(j.Deliver(t.Context()))
	if text := b.git(b.repo, "show", "HEAD:src/a/code") + b.git(b.repo, "show", "HEAD:src/b/code"); text != "AB" ||
		b.git(b.repo, "status", "--porcelain") != "" {
		t.Errorf("delivered %q", text)
	}
}

// A conflict changes nothing, and names both commits and the files.
func TestConflict(t *testing.T) {
	b := newBench(t)
	j := b.open(nil)
	first, second := b.attempt(j, "a", 1), b.attempt(j, "b", 1)
	b.work(first, "readme", "one\n2\nthree\n")
	b.work(second, "readme", "one\nzwei\nthree\n")
	tip := b.merge(first)
	_, err := second.Merge(t.Context(), "item b", nil)
	var conflict *ConflictError
	head, _ := second.Head(t.Context())
	if !errors.As(err, &conflict) || conflict.Ours != tip || conflict.Theirs != head || !slices.Equal(conflict.Files, []string{"readme"}) {
		t.Fatalf("%v, %+v", err, conflict)
	}
	if outcome := nixie.OutcomeOf(err); outcome.Reason != nixie.ReasonMergeConflict {
		t.Errorf("reason %q", outcome.Reason)
	}
	if now := b.git(b.repo, "rev-parse", j.Branch()); now != tip {
		t.Errorf("the branch is at %s, want %s", now, tip)
	}
}

// The same attempt finds its merge again, and so does the next attempt in the next process.
func TestMergedOnce(t *testing.T) {
	b := newBench(t)
	j := b.open(nil)
	a := b.attempt(j, "a", 1)
	b.work(a, "readme", "1\n")
	commit := b.merge(a)
	if again := b.merge(a); again != commit {
		t.Errorf("merged again as %s, was %s", again, commit)
	}
	b.must(j.Close())
	j = b.open(nil)
	again := b.attempt(j, "a", 2)
	b.work(again, "readme", "2\n")
	if found := b.merge(again); found != commit {
		t.Errorf("after a restart merged as %s, was %s", found, commit)
	}
	b.release(again)
	for _, id := range []string{"aa", "A", "a/1", "a.*"} {
		next := b.attempt(j, id, 1)
		b.work(next, "src/"+fmt.Sprintf("%x", id), "x\n")
		if other := b.merge(next); other == commit || other == "" {
			t.Errorf("%q is taken for another: %s", id, other)
		}
		if found, err := j.Merged(t.Context(), "a"); err != nil || found != commit {
			t.Errorf("found %s, want %s: %v", found, commit, err)
		}
		b.release(next)
	}
}

// After an attempt that left files, commits or half a rebase, the next one begins clean at the tip.
func TestTheNextBeginsClean(t *testing.T) {
	for name, leave := range map[string]func(*bench, *Tree){
		"changes":         func(b *bench, t *Tree) { b.write(t.Path, "readme", "x") },
		"staged":          func(b *bench, t *Tree) { b.write(t.Path, "new", "x"); b.git(t.Path, "add", "-A") },
		"an empty folder": func(b *bench, t *Tree) { b.must(os.Mkdir(filepath.Join(t.Path, "empty"), 0o755)) },
		"untracked":       func(b *bench, t *Tree) { b.write(t.Path, "new/file", "x") },
		"ignored":         func(b *bench, t *Tree) { b.write(t.Path, "main.o", "x") },
		"a nested repository": func(b *bench, t *Tree) {
			b.write(t.Path, "nested/file", "x")
			b.git(filepath.Join(t.Path, "nested"), "init", "--quiet")
		},
		"a lock of a killed git": func(b *bench, t *Tree) {
			own, err := t.job.gitDir(t.slot)
			b.must(err, os.WriteFile(filepath.Join(own, "index.lock"), nil, 0o600))
		},
		"a merge in the middle": func(b *bench, t *Tree) {
			b.work(t, "readme", "1\n")
			b.git(t.Path, "branch", "mine")
			b.git(t.Path, "checkout", "--quiet", "-b", "other", t.Start)
			b.work(t, "readme", "2\n")
			if _, err := b.try(t.Path, "merge", "mine"); err == nil {
				b.t.Fatal("no conflict")
			}
		},
		"a rebase in the middle": func(b *bench, t *Tree) {
			b.work(t, "readme", "1\n")
			b.git(t.Path, "branch", "mine")
			b.git(t.Path, "checkout", "--quiet", "-b", "other", t.Start)
			b.work(t, "readme", "2\n")
			if _, err := b.try(t.Path, "rebase", "mine"); err == nil {
				b.t.Fatal("no conflict")
			}
		},
		"killed while it was made": func(b *bench, t *Tree) {
			own, err := t.job.gitDir(t.slot)
			b.must(err, os.WriteFile(filepath.Join(own, "locked"), []byte("initializing"), 0o600), os.RemoveAll(t.Path))
		},
		"nothing":        func(b *bench, t *Tree) { b.must(os.RemoveAll(t.Path)) },
		"no link to git": func(b *bench, t *Tree) { b.must(os.Remove(filepath.Join(t.Path, ".git"))) },
		"a broken index": func(b *bench, t *Tree) {
			own, err := t.job.gitDir(t.slot)
			b.must(err, os.WriteFile(filepath.Join(own, "index"), []byte("x"), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			j := b.open(func(c *Config) { c.Parallel = 1 })
			first := b.attempt(j, "a", 1)
			leave(b, first)
			b.release(first)
			second := b.attempt(j, "b", 1)
			if text := b.git(second.Path, "status", "--porcelain", "--ignored"); text != "" {
				t.Errorf("left: %s", text)
			}
			if text := b.git(second.Path, "status"); strings.Contains(text, "You ") || strings.Contains(text, "in progress") {
				t.Errorf("something is under way: %s", text)
			}
			if _, err := os.Stat(filepath.Join(second.Path, "empty")); err == nil {
				t.Error("an empty folder is left")
			}
			head, err := second.Head(t.Context())
			if tip, _ := j.tip(t.Context()); err != nil || head != tip {
				t.Errorf("begins at %s, the tip is %s: %v", head, tip, err)
			}
			if branch, err := b.try(second.Path, "symbolic-ref", "--quiet", "HEAD"); err == nil {
				t.Errorf("begins on %s", branch)
			}
			b.work(second, "readme", "done\n")
			b.merge(second)
		})
	}
}

// Our calls run no hook, filter or program that a repository configures.
func TestNothingOfTheRepositoryRuns(t *testing.T) {
	b := newBench(t)
	canary := filepath.Join(filepath.Dir(b.repo), "canary")
	touch := "echo $0 $* >> " + canary + "; cat"
	for _, hook := range []string{"post-checkout", "reference-transaction", "pre-commit", "commit-msg", "pre-merge-commit", "post-merge",
		"post-rewrite", "post-index-change", "pre-auto-gc"} {
		b.write(b.repo, ".git/hooks/"+hook, "#!/bin/sh\n"+touch+"\n")
		b.must(os.Chmod(filepath.Join(b.repo, ".git/hooks", hook), 0o755))
	}
	b.write(b.repo, ".gitattributes", "code filter=evil merge=evil diff=evil\n")
	b.git(b.repo, "-c", "core.hooksPath=/dev/null", "add", "-A")
	b.git(b.repo, "-c", "core.hooksPath=/dev/null", "commit", "--quiet", "-m", "attributes")
	for _, setting := range []string{"filter.evil.smudge", "filter.evil.clean", "filter.evil.process", "merge.evil.driver",
		"diff.evil.textconv", "diff.evil.command", "core.fsmonitor", "core.sshCommand", "gpg.program"} {
		b.git(b.repo, "config", setting, touch)
	}
	b.git(b.repo, "config", "filter.evil.required", "true")
	b.git(b.repo, "config", "commit.gpgSign", "true")
	j := b.open(nil)
	for n, name := range []string{"src/a/code", "src/b/code"} {
		a := b.attempt(j, fmt.Sprint(n), 1)
		b.write(a.Path, name, "changed\n")
		for _, args := range [][]string{{"add", "-A"}, {"-c", "user.name=x", "-c", "user.email=x", "commit", "--quiet", "-m", "x"}} {
			if _, err := a.filter(t.Context(), args...); err != nil {
				t.Fatal(err)
			}
		}
		b.merge(a)
		if _, err := a.Changes(t.Context()); err != nil {
			t.Error(err)
		}
		b.release(a)
	}
	kept, err := b.attempt(j, "kept", 1).Keep(t.Context())
	b.must(err, j.Forget(t.Context(), kept), j.Clean(t.Context(), true))
	if said, err := os.ReadFile(canary); err == nil {
		t.Errorf("ran:\n%s", said)
	}
}

// A failed attempt's worktree stays as it was; the pool goes on with another.
func TestKeep(t *testing.T) {
	b := newBench(t)
	j := b.open(func(c *Config) { c.Parallel = 1 })
	a := b.attempt(j, "../a b", 3)
	b.work(a, "readme", "committed\n")
	b.write(a.Path, "readme", "not committed\n")
	kept, err := a.Keep(t.Context())
	b.must(err)
	next := b.attempt(j, "b", 1)
	b.work(next, "src/new", "x\n")
	b.merge(next)
	b.release(next)
	b.must(j.Close())
	j = b.open(nil)
	list, err := j.Kept()
	if err != nil || len(list) != 1 || list[0] != kept || kept.Item != "../a b" || kept.Lease != 3 ||
		filepath.Dir(kept.Path) != j.folder("kept") {
		t.Fatalf("kept %+v %v", list, err)
	}
	if b.git(kept.Path, "status", "--porcelain") != "M readme" || b.git(kept.Path, "rev-list", "--count", kept.Start+"..HEAD") != "1" {
		t.Error("it is not as it was")
	}
	if err := j.Clean(t.Context(), false); nixie.CodeOf(err) != nixie.CodeConflict {
		t.Errorf("cleaned what is not delivered: %v", err)
	}
	b.must(j.Forget(t.Context(), kept))
	if list, err := j.Kept(); err != nil || len(list) != 0 {
		t.Errorf("kept after that: %v %v", list, err)
	}
	_, err = b.attempt(j, "c", 1).Keep(t.Context())
	b.must(err, j.Deliver(t.Context()), j.Clean(t.Context(), false))
	if refs := b.git(b.repo, "for-each-ref", "--format=%(refname)"); refs != "refs/heads/main" {
		t.Errorf("refs are left: %s", refs)
	}
	if trees := b.git(b.repo, "worktree", "list"); strings.Count(trees, "\n") != 0 {
		t.Errorf("worktrees are left: %s", trees)
	}
	if _, err := os.Stat(j.folder()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("state is left: %v", err)
	}
}

// An attempt that checks out some folders leaves the others as they are.
func TestSomeFolders(t *testing.T) {
	b := newBench(t)
	j := b.open(func(c *Config) { c.Checkout, c.Parallel = []string{"src/a"}, 1 })
	for n := range 2 {
		a := b.attempt(j, fmt.Sprint(n), 1)
		if _, err := os.Stat(filepath.Join(a.Path, "src/b/code")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("src/b is there: %v", err)
		}
		b.write(a.Path, fmt.Sprint("src/a/new", n), "x\n")
		cmd := exec.Command("sh", "-c", "git add -A && git commit --quiet -m work && git status --porcelain")
		cmd.Dir, cmd.Env = a.Path,
			append(a.Environ(), "GIT_AUTHOR_NAME=x", "GIT_AUTHOR_EMAIL=x", "GIT_COMMITTER_NAME=x", "GIT_COMMITTER_EMAIL=x")
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Fatalf("%v: %s", err, out)
		}
		b.merge(a)
		b.release(a)
	}
	if files := b.git(b.repo, "ls-tree", "-r", "--name-only",
		j.Branch()); files != ".gitignore\nreadme\nsrc/a/code\nsrc/a/new0\nsrc/a/new1\nsrc/b/code" {
		t.Errorf("the branch has %s", files)
	}
	if text := b.git(b.repo, "config", "--local", "--list"); strings.Contains(text, "sparse") || strings.Contains(text, "worktreeconfig") {
		t.Errorf("the user's repository is configured: %s", text)
	}
}

// Many attempts of two jobs run concurrently on one repository, and each is merged once.
func TestManyAtOnce(t *testing.T) {
	b := newBench(t)
	const items = 12
	var group sync.WaitGroup
	for _, name := range []string{"one", "two"} {
		j := b.open(func(c *Config) { c.Job, c.Parallel = name, 3 })
		for n := range items {
			group.Go(func() {
				a, err := j.Attempt(t.Context(), fmt.Sprint(n), 1)
				if err != nil {
					t.Error(err)
					return
				}
				b.write(a.Path, fmt.Sprint("out/", n), "x\n")
				for _, args := range [][]string{{"add", "-A"}, {"commit", "--quiet", "-m", "x"}} {
					if out, err := b.try(a.Path, args...); err != nil {
						t.Error(out, err)
					}
				}
				if _, err := a.Merge(t.Context(), "item", nil); err != nil {
					t.Error(err)
				}
				a.Release()
			})
		}
	}
	group.Wait()
	for _, name := range []string{"one", "two"} {
		if n := b.git(b.repo, "rev-list", "--count", "--first-parent", "main..nixie/"+name); n != fmt.Sprint(items) {
			t.Errorf("job %s has %s merges", name, n)
		}
		if n := strings.Count(b.git(b.repo, "ls-tree", "-r", "--name-only", "nixie/"+name), "out/"); n != items {
			t.Errorf("job %s has %d files", name, n)
		}
	}
	if out := b.git(b.repo, "fsck", "--strict"); strings.Contains(out, "error") || strings.Contains(out, "missing") {
		t.Error(out)
	}
}

// The branch moves only if it is still at the commit that was read.
func TestCompareAndSwap(t *testing.T) {
	b := newBench(t)
	j := b.open(nil)
	a := b.attempt(j, "a", 1)
	b.work(a, "readme", "x\n")
	head, err := a.Head(t.Context())
	b.must(err)
	if moved, err := j.updateRef(t.Context(), head, strings.Repeat("1", len(head)), 0); err != nil || moved {
		t.Errorf("moved %v, %v", moved, err)
	}
	if moved, err := j.updateRef(t.Context(), head, j.Base(), 0); err != nil || !moved {
		t.Errorf("did not move: %v, %v", moved, err)
	}
	if _, err := j.updateRef(t.Context(), "none", head, 0); err == nil {
		t.Error("moved to nowhere")
	}
}

// Deliver merges into a branch on which the user has committed meanwhile, or refuses with a reason.
func TestDeliver(t *testing.T) {
	b := newBench(t)
	j := b.open(nil)
	a := b.attempt(j, "a", 1)
	b.work(a, "readme", "job\n")
	b.merge(a)
	b.write(b.repo, "src/a/code", "user\n")
	if err := j.Deliver(t.Context()); nixie.CodeOf(err) != nixie.CodeConflict || !strings.Contains(err.Error(), "not committed") {
		t.Errorf("over changes: %v", err)
	}
	b.commit(b.repo, "user")
	b.git(b.repo, "checkout", "--quiet", "-b", "elsewhere")
	if err := j.Deliver(t.Context()); nixie.CodeOf(err) != nixie.CodeConflict ||
		!strings.Contains(err.Error(), "another branch than main") {
		t.Errorf("into another branch: %v", err)
	}
	b.git(b.repo, "checkout", "--quiet", "main")
	b.must(j.Deliver(t.Context()))
	if text := b.git(b.repo, "show", "HEAD:readme", "HEAD:src/a/code"); text != "job\nuser" {
		t.Errorf("delivered %q", text)
	}
	c := b.attempt(j, "c", 1)
	b.work(c, "readme", "again\n")
	b.merge(c)
	b.write(b.repo, "readme", "mine\n")
	b.commit(b.repo, "user")
	before := b.git(b.repo, "rev-parse", "HEAD")
	err := j.Deliver(t.Context())
	if outcome := nixie.OutcomeOf(err); outcome.Reason != nixie.ReasonMergeConflict || b.git(b.repo, "rev-parse", "HEAD") != before ||
		b.git(b.repo, "status", "--porcelain") != "" {
		t.Errorf("a conflict: %v", err)
	}
}

// heldGit is a git whose merges into a checkout wait for a signal of the test.
const heldGit = `#!/bin/sh
case " $* " in *" merge --quiet "*) echo > "$BEGUN"; read line < "$GATE" ;; esac
exec git "$@"
`

// A merge into the user's checkout that has begun comes to its end, also when its caller's context
// ends.
func TestDeliverIsNotCutOff(t *testing.T) {
	b := newBench(t)
	bin := b.repo + "-bin"
	begun, gate := filepath.Join(bin, "begun"), filepath.Join(bin, "gate")
	b.write(bin, "git", heldGit)
	b.must(os.Chmod(filepath.Join(bin, "git"), 0o755), exec.Command("mkfifo", gate, begun).Run())
	j := b.open(func(c *Config) {
		c.Git, c.Environ = filepath.Join(bin, "git"), append(c.Environ, "BEGUN="+begun, "GATE="+gate)
	})
	a := b.attempt(j, "a", 1)
	b.work(a, "readme", "job\n")
	b.merge(a)
	ctx, stop := context.WithCancel(t.Context())
	delivered := make(chan error)
	go func() { delivered <- j.Deliver(ctx) }()
	if _, err := os.ReadFile(begun); err != nil { // waits for the process that writes it
		t.Fatal(err)
	}
	stop()
	b.must(os.WriteFile(gate, []byte("go\n"), 0o600))
	b.must(<-delivered)
	if text := b.git(b.repo, "show", "HEAD:readme"); text != "job" || b.git(b.repo, "status", "--porcelain") != "" {
		t.Errorf("delivered %q", text)
	}
}

// An attempt that waits for a worktree returns when its context ends.
func TestWaitingEnds(t *testing.T) {
	b := newBench(t)
	j := b.open(func(c *Config) { c.Parallel = 1 })
	b.attempt(j, "a", 1)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := j.Attempt(ctx, "b", 1); nixie.CodeOf(err) != nixie.CodeUnavailable {
		t.Errorf("%v", err)
	}
}
