package worktree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nixie-go/nixie"
)

// A user looks at the branch of a job in a worktree of their own, and commits there, while the
// job goes on. That worktree stays as it is, and both come together in the end.
func TestTheBranchIsLookedAt(t *testing.T) {
	b := newBench(t)
	j := b.open(nil)
	look := b.repo + "-look"
	merge := func(item, file string) {
		a := b.attempt(j, item, 1)
		b.work(a, file, item+"\n")
		b.merge(a)
		b.release(a)
	}
	merge("one", "readme")
	b.git(b.repo, "worktree", "add", "--quiet", look, j.Branch())
	at := b.git(look, "rev-parse", "HEAD")
	merge("two", "src/a/code")
	if b.git(look, "rev-parse", "HEAD") != at || b.git(look, "status", "--porcelain") != "" {
		t.Error("their worktree changed")
	}
	if folder, err := j.Follow(t.Context()); err != nil || folder != look {
		t.Errorf("%q has it: %v", folder, err)
	}
	b.write(look, "note", "note\n")
	b.commit(look, "note")
	b.must(j.Close())
	j = b.open(nil) // who only looks does not stop the next run
	merge("three", "src/b/code")
	b.must(j.Deliver(t.Context()))
	if text := b.git(b.repo, "show", "HEAD:readme", "HEAD:src/a/code", "HEAD:src/b/code", "HEAD:note"); text != "one\ntwo\nthree\nnote" {
		t.Errorf("delivered %q", text)
	}
	if b.git(look, "status", "--porcelain") != "" {
		t.Error("their worktree changed")
	}
	if err := j.Clean(t.Context(), true); nixie.CodeOf(err) != nixie.CodeConflict ||
		!strings.Contains(err.Error(), "checked out in "+look+": git -C "+look+" switch --detach leaves it") {
		t.Errorf("cleaned: %v", err)
	}
	b.git(look, "switch", "--quiet", "--detach")
	if folder, err := j.Follow(t.Context()); err != nil || folder != "" || b.git(b.repo, "rev-parse", j.Branch(), "main~0") == "" {
		t.Errorf("%q has it: %v", folder, err)
	}
	for _, item := range []string{"one", "two", "three"} {
		if done, err := j.Merged(t.Context(), item); err != nil || done == "" {
			t.Errorf("the merge of %s is not found: %v", item, err)
		}
	}
	b.must(j.Clean(t.Context(), false))
	if refs := b.git(b.repo, "for-each-ref", "--format=%(refname)"); refs != "refs/heads/main" {
		t.Errorf("left: %s", refs)
	}
}

// A job does not run while a user works on its branch: in the checkout that the work is merged
// into, or with changes. The text names the folder and the way out, and that way is one.
func TestTheBranchIsUsed(t *testing.T) {
	b := newBench(t)
	look := b.repo + "-look"
	b.must(b.open(nil).Close())
	refused := func(says ...string) {
		t.Helper()
		_, err := Open(t.Context(), b.config(nil))
		for _, part := range says {
			if nixie.CodeOf(err) != nixie.CodeConflict || !strings.Contains(err.Error(), part) {
				t.Errorf("%v, want %q", err, part)
			}
		}
	}
	b.git(b.repo, "switch", "--quiet", "nixie/nightly")
	refused("checked out in "+b.repo, "git -C "+b.repo+" switch main leaves it")
	b.git(b.repo, "switch", "--quiet", "main")
	b.must(b.open(nil).Close())
	b.git(b.repo, "worktree", "add", "--quiet", look, "nixie/nightly")
	b.write(look, "readme", "mine\n")
	refused("checked out in " + look + " with changes")
	b.git(look, "switch", "--quiet", "--detach")
	b.must(b.open(nil).Close())
}

// Commits on the branch that conflict with the work of the job are told, and neither is lost.
func TestTheBranchConflicts(t *testing.T) {
	b := newBench(t)
	j := b.open(nil)
	look := b.repo + "-look"
	b.git(b.repo, "worktree", "add", "--quiet", look, j.Branch())
	a := b.attempt(j, "one", 1)
	b.work(a, "readme", "job\n")
	b.merge(a)
	b.write(look, "readme", "mine\n")
	b.commit(look, "mine")
	err := j.Deliver(t.Context())
	if nixie.OutcomeOf(err).Reason != nixie.ReasonMergeConflict ||
		!strings.Contains(err.Error(), "git merge refs/nixie-work/nightly there") {
		t.Fatalf("%v", err)
	}
	if _, err := b.try(look, "merge", "refs/nixie-work/nightly"); err == nil {
		t.Fatal("no conflict")
	}
	b.write(look, "readme", "both\n")
	b.commit(look, "both")
	b.must(j.Deliver(t.Context()))
	if text := b.git(b.repo, "show", "HEAD:readme"); text != "both" {
		t.Errorf("delivered %q", text)
	}
}

// A worktree that a user locked stays when its item succeeds. Clean tells it, and removes it with
// force, also when its folder is gone.
func TestALockedWorktreeIsTold(t *testing.T) {
	for name, gone := range map[string]bool{"there": false, "gone": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			j := b.open(nil)
			kept, err := b.attempt(j, "a", 1).Keep(t.Context())
			b.must(err)
			b.git(b.repo, "worktree", "lock", "--reason", "on a stick", kept.Path)
			b.must(j.ForgetItem(t.Context(), "a", 2))
			if _, err := os.Stat(kept.Path); err != nil {
				t.Error(err)
			}
			if gone {
				b.must(os.RemoveAll(kept.Path), j.Close())
				j = b.open(nil)
			}
			err = j.Clean(t.Context(), false)
			if nixie.CodeOf(err) != nixie.CodeConflict || !strings.Contains(err.Error(), kept.Path+" is locked (on a stick)") ||
				!strings.Contains(err.Error(), "worktree unlock "+kept.Path) {
				t.Errorf("%v", err)
			}
			b.must(j.Clean(t.Context(), true))
			if trees := b.git(b.repo, "worktree", "list"); strings.Contains(trees, "\n") {
				t.Errorf("left: %s", trees)
			}
		})
	}
}

// Merge and clean find the repository of their job. Of another one they say which it is.
func TestAJobKnowsItsRepository(t *testing.T) {
	b, other := newBench(t), newBench(t)
	b.must(b.open(nil).Close())
	for repo, says := range map[string]string{
		other.repo:             "is about the repository " + b.repo + "/.git",
		filepath.Dir(b.repo):   "and job nightly is about " + b.repo + "/.git: name that",
		b.repo:                 "",
		"":                     "",
		b.repo + "/src/a":      "",
		b.repo + "/no/folder/": "and job nightly is about " + b.repo + "/.git: name that",
	} {
		j, err := Open(t.Context(), b.config(func(c *Config) { c.Repo, c.Existing = repo, true }))
		if says == "" {
			b.must(err, j.Deliver(t.Context()), j.Close())
		} else if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", repo, err)
		}
	}
	b.git(b.repo, "branch", "-D", "nixie/nightly") // clean goes on without it
	j := b.open(func(c *Config) { c.Repo, c.Existing = "", true })
	b.must(j.Clean(t.Context(), false))
}

// Jobs of one name in two repositories have a folder and a queue each. One of a build that had one
// of a name keeps both.
func TestJobsOfOneName(t *testing.T) {
	b, other := newBench(t), newBench(t)
	same := func(c *Config) { c.State = b.state }
	none := func(string) (string, bool, error) { return "", false, nil }
	old := b.open(nil)
	b.must(old.Close(), os.Rename(old.folder(), filepath.Join(b.state, "nightly")))
	old = b.open(nil)
	if old.folder() != filepath.Join(b.state, "nightly") || old.Queue() != "mapreduce/nightly" {
		t.Errorf("%s, %s", old.folder(), old.Queue())
	}
	b.must(old.Close())

	// The old one has the plain queue wherever a store has items in it.
	for store, owner := range map[string]func(string) (string, bool, error){
		"mapreduce/nightly":                             none,
		hashed("mapreduce/nightly", other.repo+"/.git"): func(string) (string, bool, error) { return "", true, nil },
	} {
		j := other.open(same)
		queue, err := j.ChooseQueue("store", owner)
		if err != nil || queue != store {
			t.Errorf("%s, want %s: %v", queue, store, err)
		}
		// It stays, but for a further store in which another repository has the plain one.
		elsewhere := func(string) (string, bool, error) { return "/elsewhere/.git", true, nil }
		its := func(string) (string, bool, error) { return other.repo + "/.git", true, nil }
		same, err := j.ChooseQueue("store", elsewhere)
		b.must(err)
		further, err := j.ChooseQueue("further", its)
		b.must(err)
		third, err := j.ChooseQueue("third", elsewhere)
		if err != nil || same != queue || further != queue || third != hashed("mapreduce/nightly", other.repo+"/.git") {
			t.Errorf("chosen again: %s, %s, %s, %v", same, further, third, err)
		}
		b.must(j.Clean(t.Context(), true))
	}
	j := other.open(same)
	if queue, err := j.ChooseQueue("store", func(string) (string, bool, error) { return "/elsewhere/.git", true, nil }); err != nil ||
		queue != hashed("mapreduce/nightly", other.repo+"/.git") {
		t.Error(queue, err)
	}
	b.must(j.Close())

	// It keeps its queue, unless the store says that this is of another one.
	old = b.open(nil)
	for _, of := range []string{"", b.repo + "/.git"} {
		if queue, err := old.ChooseQueue("store", func(string) (string, bool, error) { return of, true, nil }); err != nil ||
			queue != "mapreduce/nightly" {
			t.Error(queue, err)
		}
	}
	queue, err := old.ChooseQueue("another", func(string) (string, bool, error) { return other.repo + "/.git", true, nil })
	if err != nil || queue != hashed("mapreduce/nightly", b.repo+"/.git") {
		t.Error(queue, err)
	}
	_, err = Open(t.Context(), other.config(func(c *Config) { c.Job = "nightly~0123abcd" }))
	if nixie.CodeOf(err) != nixie.CodeInvalid || !strings.Contains(err.Error(), "leave out ~") {
		t.Error(err)
	}
}

// A copy of a repository has the branch of its job, and not the job. When the original is gone it
// is the repository, moved.
func TestACopyIsAnotherRepository(t *testing.T) {
	b := newBench(t)
	j := b.open(nil)
	kept, err := b.attempt(j, "a", 1).Keep(t.Context())
	b.must(err)
	done := b.attempt(j, "b", 1)
	b.work(done, "readme", "x\n")
	b.merge(done)
	b.release(done)
	b.must(j.Close(), os.CopyFS(b.repo+"-copy", os.DirFS(b.repo)))
	copied := func(c *Config) { c.Repo += "-copy" }
	if _, err := Find(t.Context(), b.config(copied)); nixie.CodeOf(err) != nixie.CodeNotFound ||
		!strings.Contains(err.Error(), "job nightly is about the repository "+b.repo+"/.git, and ") {
		t.Error(err)
	}
	if _, err := Open(t.Context(), b.config(copied)); nixie.CodeOf(err) != nixie.CodeConflict {
		t.Error(err)
	}
	b.must(os.RemoveAll(b.repo))
	if _, err := Open(t.Context(), b.config(func(c *Config) { c.Repo, c.Existing = "", true })); nixie.CodeOf(err) != nixie.CodeNotFound ||
		!strings.Contains(err.Error(), "which is gone: if it was moved, name it by --repo") {
		t.Error(err)
	}
	b.open(copied)
	if at := b.git(kept.Path, "rev-parse", "--path-format=absolute", "--git-common-dir"); at != b.repo+"-copy/.git" {
		t.Errorf("the kept worktree is of %s", at)
	}
	if _, err := Find(t.Context(), b.config(func(c *Config) { c.Repo = "" })); err != nil {
		t.Error(err)
	}
}

// A job of a build that had the branch only goes on.
func TestAJobOfAnEarlierBuild(t *testing.T) {
	b := newBench(t)
	j := b.open(nil)
	a := b.attempt(j, "a", 1)
	b.work(a, "readme", "x\n")
	commit := b.merge(a)
	b.must(j.Close())
	b.git(b.repo, "update-ref", "-d", "refs/nixie-work/nightly")
	j = b.open(nil)
	if done, err := j.Merged(t.Context(), "a"); err != nil || done != commit {
		t.Errorf("merged as %s: %v", done, err)
	}
}
