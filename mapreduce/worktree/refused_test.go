package worktree

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
)

// Open refuses what it cannot work on in one line that names the fix, and leaves nothing in the
// repository.
func TestRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil  func(*bench)
		change func(*Config)
		says   string
	}{
		"not a repository": {nil, func(c *Config) { c.Repo = filepath.Dir(c.Repo) }, "is not in a git repository"},
		"no such folder":   {nil, func(c *Config) { c.Repo += "/none" }, "is not in a git repository"},
		"bare": {func(b *bench) { b.git(filepath.Dir(b.repo), "clone", "--quiet", "--bare", b.repo, b.repo+".git") },
			func(c *Config) { c.Repo += ".git" }, "is a bare repository"},
		"shallow": {func(b *bench) {
			b.write(b.repo, "readme", "second\n")
			b.commit(b.repo, "second")
			b.git(filepath.Dir(b.repo), "clone", "--quiet", "--depth", "1", "file://"+b.repo, b.repo+"-shallow")
		}, func(c *Config) { c.Repo += "-shallow" }, "git fetch --unshallow"},
		"no commit": {func(b *bench) { b.git(filepath.Dir(b.repo), "init", "--quiet", b.repo+"-empty") },
			func(c *Config) { c.Repo += "-empty" }, "has no commit yet"},
		"on no branch": {func(b *bench) { b.git(b.repo, "checkout", "--quiet", "--detach") }, nil, "is on no branch"},
		"a submodule": {func(b *bench) {
			b.git(b.repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", b.repo, "inner")
			b.commit(b.repo, "submodule")
		}, nil, "inner is a submodule"},
		"LFS": {func(b *bench) {
			b.write(b.repo, "data/.gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
			b.commit(b.repo, "lfs")
		}, nil, "data/.gitattributes puts files into LFS"},
		"changes": {func(b *bench) { b.write(b.repo, "readme", "x") }, nil, "commit or stash readme"},
		"staged":  {func(b *bench) { b.write(b.repo, "new", "x"); b.git(b.repo, "add", "new") }, nil, "commit or stash new"},
		"link up": {func(b *bench) { b.must(os.Symlink("../../etc/passwd", b.repo+"/out")); b.commit(b.repo, "x") }, nil,
			"out is a link to"},
		"link to /": {func(b *bench) { b.must(os.Symlink("/etc/passwd", b.repo+"/src/out")); b.commit(b.repo, "x") }, nil,
			"src/out is a link to"},
		"our branch": {func(b *bench) {
			b.write(b.repo, "readme", "x")
			b.commit(b.repo, "x")
			b.git(b.repo, "branch", "nixie/nightly", "HEAD~")
		}, nil, "is there and is not of this job"},
		"a branch in the way": {func(b *bench) { b.git(b.repo, "branch", "nixie") }, nil,
			"branch nixie/nightly cannot be made"},
		"names that are one": {func(b *bench) {
			b.write(b.repo, "README", "x")
			b.commit(b.repo, "x")
			b.git(b.repo, "config", "core.ignoreCase", "true")
		}, nil, "are one file on this system"},
		"state inside":     {nil, func(c *Config) { c.State = c.Repo + "/state" }, "name a folder outside"},
		"no state":         {nil, func(c *Config) { c.State = "" }, "a folder for their state"},
		"no job":           {nil, func(c *Config) { c.Job = "a\nb" }, "control character"},
		"checkout above":   {nil, func(c *Config) { c.Checkout = []string{"../x"} }, "is not a folder of the repository"},
		"checkout pattern": {nil, func(c *Config) { c.Checkout = []string{"src/*"} }, "is not a folder of the repository"},
		"no git":           {nil, func(c *Config) { c.Git = "/none/git" }, "cannot be started"},
		"an old git": {func(b *bench) {
			b.write(b.repo+"-bin", "git", "#!/bin/sh\necho git version 2.38.9\n")
			b.must(os.Chmod(b.repo+"-bin/git", 0o755))
		}, func(c *Config) { c.Git = c.Repo + "-bin/git" }, "install 2.39 or later"},
		"a git of no sense": {func(b *bench) {
			b.write(b.repo+"-bin", "git", "#!/bin/sh\necho what\n")
			b.must(os.Chmod(b.repo+"-bin/git", 0o755))
		}, func(c *Config) { c.Git = c.Repo + "-bin/git" }, "install 2.39 or later"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			if tc.spoil != nil {
				tc.spoil(b)
			}
			refs := b.git(b.repo, "for-each-ref")
			_, err := Open(t.Context(), b.config(tc.change))
			if err == nil || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, want %q", err, tc.says)
			}
			if now := b.git(b.repo, "for-each-ref"); now != refs || strings.Contains(b.git(b.repo, "worktree", "list"), "\n") {
				t.Errorf("left in the repository: %s", now)
			}
		})
	}
}

// Only one runner has a job at a time; the error of a second names the process of the first.
func TestOneRunnerHasAJob(t *testing.T) {
	b := newBench(t)
	j := b.open(nil)
	if _, err := Open(t.Context(), b.config(nil)); nixie.CodeOf(err) != nixie.CodeConflict ||
		!strings.Contains(err.Error(), "at work in process ") {
		t.Errorf("%v", err)
	}
	b.open(func(c *Config) { c.Job = "other" })
	b.must(j.Close())
	b.open(nil)
}

// The kernel holds the lock of a job and ends it with its process, on any host. The number in its
// file is for people: a live process with that number does not matter.
func TestR58_LockOfADeadProcess(t *testing.T) {
	b := newBench(t)
	j := b.open(nil)
	lock := j.folder("lock")
	b.must(j.Close())
	for _, says := range []string{"1 on elsewhere\n", fmt.Sprintf("%d on here\n", os.Getpid()), ""} {
		b.must(os.WriteFile(lock, []byte(says), 0o600))
		j := b.open(nil)
		if has, err := os.ReadFile(lock); err != nil || !strings.HasPrefix(string(has), fmt.Sprintf("%d on ", os.Getpid())) {
			t.Errorf("after %q: %q %v", says, has, err)
		}
		b.must(j.Close())
	}
}

// The next runner removes the lock that git left on the branch when the machine went down. It
// leaves a lock that a call may hold now.
func TestStaleLockOfABranchIsRemoved(t *testing.T) {
	b := newBench(t)
	b.must(b.open(nil).Close())
	lock := filepath.Join(b.repo, ".git/refs/heads/nixie/nightly.lock")
	left := func(old time.Duration) bool {
		b.write(filepath.Dir(lock), "nightly.lock", "")
		then := time.Now().Add(-old)
		b.must(os.Chtimes(lock, then, then))
		b.must(b.open(nil).Close())
		_, err := os.Lstat(lock)
		return err == nil
	}
	if left(2*DefaultDeadline + time.Minute) {
		t.Error("it stayed")
	}
	if !left(DefaultDeadline) {
		t.Error("that of a call that may run is gone")
	}
}

// A job needs its branch.
func TestGoingOnWithAJob(t *testing.T) {
	b := newBench(t)
	b.must(b.open(nil).Close())
	b.write(b.repo, "readme", "the user goes on\n") // which is no matter any more
	b.must(b.open(nil).Close())
	b.git(b.repo, "branch", "-D", "nixie/nightly")
	if _, err := Open(t.Context(), b.config(nil)); nixie.CodeOf(err) != nixie.CodeConflict || !strings.Contains(err.Error(), "is gone") {
		t.Errorf("without its branch: %v", err)
	}
}

// Every ID makes a branch name that git accepts, and no two IDs make the same.
func TestNamesOfBranches(t *testing.T) {
	j := &Job{name: refName("a job.lock")}
	seen := map[string]string{}
	for _, id := range []string{"a", "..", ".", "a.lock", "@", "@{", "a b", "a/b", `a\b`, "-a", "~^:?*[", "über", "a.", "%2E",
		strings.Repeat("x.", 120), "\x01"} {
		branch := j.attemptBranch(id, 7)
		if out, err := exec.Command("git", "check-ref-format", "--branch", branch).CombinedOutput(); err != nil {
			t.Errorf("%q: %s: %v %s", id, branch, err, out)
		}
		if seen[branch] != "" {
			t.Errorf("%q and %q have %s", id, seen[branch], branch)
		}
		seen[branch] = id
		for _, part := range strings.Split(branch, "/") {
			if len(part) > 250 {
				t.Errorf("%q: a part of %s is too long for a file", id, branch)
			}
		}
	}
}
