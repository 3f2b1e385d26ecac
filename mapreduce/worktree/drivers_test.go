package worktree

import (
	"os"
	"path/filepath"
	"testing"
)

// Settings that only a linked worktree sees, and those that an attempt has just made, run nothing
// in our calls either.
func TestNothingOfALinkedWorktreeRuns(t *testing.T) {
	include := func(condition string) func(*bench, *Tree) {
		return func(b *bench, _ *Tree) { b.git(b.repo, "config", condition+".path", b.repo+"-evil") }
	}
	for name, tc := range map[string]struct{ before, during doing }{
		"by its folder": {before: include("includeIf.gitdir:**/worktrees/**")},
		"by its branch": {
			before: include("includeIf.onbranch:mine"),
			during: func(b *bench, a *Tree) { b.git(a.Path, "switch", "-qc", "mine") },
		},
		"by the job's branch":    {before: include("includeIf.onbranch:main")},
		"included":               {before: include("include")},
		"made by the attempt":    {during: include("include")},
		"of the checkout only":   {before: worktreeSettings, during: func(b *bench, _ *Tree) { b.own(b.repo) }},
		"of the worktree only":   {before: worktreeSettings, during: func(b *bench, a *Tree) { b.own(a.Path) }},
		"a name with equal sign": {during: func(b *bench, a *Tree) { b.git(b.repo, "config", "filter.a=b.clean", "touch "+b.repo+"-ran") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.write(b.repo, ".gitattributes", "* filter=evil merge=evil diff=evil\n*.x filter=a=b\n")
			b.write(b.repo, "file.x", "x\n")
			b.write(b.repo, "readme", "1\n2\n3\n4\n5\n")
			b.commit(b.repo, "attributes")
			b.write(filepath.Dir(b.repo), "repo-evil", `[core]
	hooksPath = `+b.repo+`-hooks
	fsmonitor = touch `+b.repo+`-ran
	sshCommand = touch `+b.repo+`-ran
[filter "evil"]
	clean = touch `+b.repo+`-ran; cat
	smudge = touch `+b.repo+`-ran; cat
	process = touch `+b.repo+`-ran
	required = true
[merge "evil"]
	driver = touch `+b.repo+`-ran
[diff "evil"]
	textconv = touch `+b.repo+`-ran
[gpg]
	program = touch `+b.repo+`-ran
[merge]
	verifySignatures = true
[log]
	showSignature = true
`)
			for _, hook := range []string{"post-checkout", "reference-transaction", "post-merge", "post-index-change"} {
				b.write(b.repo+"-hooks", hook, "#!/bin/sh\ntouch "+b.repo+"-ran\n")
				b.must(os.Chmod(filepath.Join(b.repo+"-hooks", hook), 0o755))
			}
			tc.before.run(b, nil)
			j := b.open(nil)
			first, second := b.attempt(j, "first", 1), b.attempt(j, "second", 1)
			b.plain(first, "readme", "one\n2\n3\n4\n5\n")
			b.plain(second, "readme", "1\n2\n3\n4\nfive\n")
			tc.during.run(b, first)
			b.merge(first)
			b.merge(second)
			b.write(first.Path, "readme", "changed\n")
			if _, err := first.Changes(t.Context()); err != nil {
				t.Error(err)
			}
			_, err := first.Keep(t.Context())
			b.must(err)
			second.Release()
			b.attempt(j, "third", 1).Release()
			b.attempt(j, "fourth", 1).Release()
			b.userCommits("readme", "1\n2\nthree\n4\n5\n")
			b.must(j.Deliver(t.Context()))
			if text, _ := os.ReadFile(filepath.Join(b.repo, "readme")); string(text) != "one\n2\nthree\n4\nfive\n" {
				t.Errorf("delivered %q", text)
			}
			if _, err := os.Stat(b.repo + "-ran"); err == nil {
				t.Error("something ran")
			}
		})
	}
}

// doing is something that is done to a worktree; nil does nothing.
type doing func(*bench, *Tree)

func (do doing) run(b *bench, a *Tree) {
	if do != nil {
		do(b, a)
	}
}

// own includes the settings in one worktree only.
func (b *bench) own(folder string) {
	b.t.Helper()
	b.git(folder, "config", "--worktree", "include.path", b.repo+"-evil")
}

func worktreeSettings(b *bench, _ *Tree) {
	b.git(b.repo, "config", "extensions.worktreeConfig", "true")
}

// userCommits commits a change to the checkout as a user who trusts no driver.
func (b *bench) userCommits(name, text string) {
	b.t.Helper()
	b.write(b.repo, name, text)
	g, err := newGit("", b.environ(), DefaultDeadline)
	b.must(err)
	for _, args := range [][]string{{"add", "-A"}, {"-c", "user.name=x", "-c", "user.email=x", "commit", "--quiet", "-m", "x"}} {
		if s, code, err := g.filter(b.t.Context(), b.repo, args...); err != nil || code != 0 {
			b.t.Fatal(s, err)
		}
	}
}

// plain commits a change as an attempt would whose own git runs nothing.
func (b *bench) plain(t *Tree, name, text string) {
	b.t.Helper()
	b.write(t.Path, name, text)
	for _, args := range [][]string{{"add", "-A"}, {"-c", "user.name=x", "-c", "user.email=x", "commit", "--quiet", "-m", "x"}} {
		_, err := t.filter(b.t.Context(), args...)
		b.must(err)
	}
}
