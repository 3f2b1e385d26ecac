//go:build unix

package cli_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// repository makes one with files to change, and a list of them.
func (d *workspace) repository(files int) {
	d.t.Helper()
	d.repositoryIn("repo", "files.txt", "f", files)
}

// repositoryIn makes one in a folder. The names of its files begin so.
func (d *workspace) repositoryIn(folder, into, begin string, files int) {
	d.t.Helper()
	d.env = append(d.env, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=ann", "GIT_AUTHOR_EMAIL=ann@desk", "GIT_COMMITTER_NAME=ann",
		"GIT_COMMITTER_EMAIL=ann@desk")
	if err := os.MkdirAll(d.path(folder), 0o755); err != nil { // a test may have mounted a disk there
		d.t.Fatal(err)
	}
	var list strings.Builder
	for n := range files {
		d.write(fmt.Sprint(folder, "/", begin, n), "old\n")
		fmt.Fprintf(&list, "%s%d\n", begin, n)
	}
	d.write(into, list.String())
	d.gitIn(folder, "init", "--quiet", "--initial-branch", "main")
	d.gitIn(folder, "add", "-A")
	d.gitIn(folder, "commit", "--quiet", "-m", "first")
}

// git runs the user's git in the repository.
func (d *workspace) git(args ...string) string {
	d.t.Helper()
	return d.gitIn("repo", args...)
}

// gitIn runs the user's git in a folder.
func (d *workspace) gitIn(folder string, args ...string) string {
	d.t.Helper()
	cmd := d.command("git", args...)
	cmd.Dir = d.path(folder)
	out, err := cmd.CombinedOutput()
	if err != nil {
		d.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// change is a command that changes a file, and commits that.
const change = `echo new > "$0" && git commit -qam "change $0"`

func mapRun(flags []string, script string) []string {
	args := append([]string{"map", "run", "files.txt", "--repo", "repo", "--job", "j", "--no-output"}, flags...)
	return append(args, "--", "sh", "-c", script, "{line}")
}

// What succeeds is merged, once each; what fails in whichever way lies in the office with
// its worktree; fixed and redriven, it is merged as well. The checkout is as it was until
// it is asked for.
func TestMapOfAllFailures(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	d.repository(6)
	script := `case "$0" in
f1) if [ -e ` + d.path("fixed") + ` ]; then ` + change + `; else echo broken >&2; exit 3; fi;;
f2) if [ -e ` + d.path("fixed") + ` ]; then ` + change + `; else echo new > "$0"; fi;;
f3) echo "$NIXIE_LEASE" > shared && git add -A && git commit -qm "change f3";;
f4) if [ -e ` + d.path("fixed") + ` ]; then ` + change + `; fi;;
f5) git checkout -q -b mine main && echo other > shared && git add -A && git commit -qm f5;;
*) ` + change + `;; esac`
	args := mapRun([]string{"-p", "1", "--max-attempts", "1", "--commit-required"}, script)
	before := d.git("rev-parse", "HEAD")
	said := d.nixie(5, args...)
	if !strings.Contains(said.err, "2 succeeded, 4 dead") {
		t.Fatal(said.err)
	}
	if d.git("rev-parse", "HEAD") != before || d.git("status", "--porcelain") != "" {
		t.Error("the checkout changed")
	}
	reasons := d.nixie(0, "dlq", "list", "-o", "csv").out
	for _, want := range []string{"command-failed", "no-commit", "merge-conflict"} {
		if !strings.Contains(d.nixie(0, "dlq", "analyze").out, want) {
			t.Errorf("no letter is %s: %s", want, reasons)
		}
	}
	show := d.nixie(0, "dlq", "show", "f2").out
	if !strings.Contains(show, "files changed and not committed: 1") || !strings.Contains(show, "worktree_path") ||
		!strings.Contains(show, " M f2") {
		t.Errorf("shown: %s", show)
	}
	if kept := d.nixie(0, "map", "kept", "--job", "j").out; !strings.Contains(kept, "f1") || !strings.Contains(kept, "f2") {
		t.Errorf("kept: %s", kept)
	}
	d.write("fixed", "")
	d.nixie(0, "dlq", "redrive", "--filter", "key:f1,f2,f4", "--force", "--reason", "fixed", "--yes")
	d.nixie(5, args...)
	if kept := d.nixie(0, "map", "kept", "--job", "j", "-o", "csv").out; strings.Count(kept, "\n") != 2 ||
		!strings.Contains(kept, "\nf5,") {
		t.Errorf("kept of what is merged: %s", kept)
	}
	d.nixie(0, "map", "merge", "--repo", "repo", "--job", "j")
	merges := d.git("log", "--first-parent", "--format=%s", before+"..HEAD")
	for _, item := range []string{"f0", "f1", "f2", "f3", "f4"} {
		if n := strings.Count("\n"+merges+"\n", "\nitem "+item+"\n"); n != 1 {
			t.Errorf("%s is merged %d times: %s", item, n, merges)
		}
	}
	d.nixie(0, "map", "clean", "--repo", "repo", "--job", "j")
	if refs := d.git("for-each-ref", "--format=%(refname:short)"); strings.Contains(refs, "nixie") {
		t.Errorf("refs are left: %s", refs)
	}
	d.noProcess()
	d.verify()
}

// Two attempts that cannot be joined: the second is a letter of reason merge-conflict, with
// both commits and its worktree. Merges come one after the other, and the branch that is
// checked out is as it was until the end.
func TestR57_MapConflict(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	d.repository(2)
	before := d.git("rev-parse", "main")
	// Both begin at the same commit: the one waits for the other.
	script := `touch ` + d.path("begun-") + `$0; until [ -e ` + d.path("begun-f0") + ` -a -e ` + d.path("begun-f1") +
		` ]; do sleep 0.01; done
git -C ` + d.path("repo") + ` rev-parse main >> ` + d.path("seen") + `; echo "$0" > shared && git add -A && git commit -qm "$0"`
	d.nixie(5, mapRun([]string{"-p", "2", "--max-attempts", "1", "--merge"}, script)...)
	if said := d.nixie(0, "dlq", "analyze").out; !strings.Contains(said, "1 × merge-conflict") {
		t.Error(said)
	}
	letter := d.nixie(0, "map", "dlq", "export", "--layout", "mapreduce", "--format", "json").out
	for _, want := range []string{`"MergeConflict"`, `"worktree_path":"` + d.dir, `"branch_name":"nixie-attempts/j/f`} {
		if !strings.Contains(letter, want) {
			t.Errorf("no %s in %s", want, letter)
		}
	}
	if seen := d.read("seen"); seen != before+"\n"+before+"\n" {
		t.Errorf("main was %q while items were changed, want %s", seen, before)
	}
	if n := d.git("rev-list", "--count", "--first-parent", before+"..HEAD"); n != "1" || d.git("status", "--porcelain") != "" {
		t.Errorf("%s merges", n)
	}
}

// What cannot be done is said before anything is enqueued or made.
func TestMapRefused(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	d.repository(1)
	for _, tc := range []struct {
		code int
		args []string
		says string
	}{
		{2, []string{"map", "run"}, "no list: nixie map run ITEMS"},
		{2, []string{"map", "run", "-", "--repo", "repo", "--", "true"}, "give --job NAME"},
		{2, []string{"map", "run", "files.txt", "--repo", ".", "--", "true"}, "is not in a git repository"},
		{2, []string{"map", "merge", "--repo", "repo"}, "--job is empty"},
		{1, []string{"map", "merge", "--repo", "repo", "--job", "none"}, "there is no job none"},
		{2, []string{"map", "run", "files.txt", "--repo", "repo", "--checkout", "../x", "--", "true"}, "is not a folder of the repository"},
	} {
		if said := d.nixie(tc.code, tc.args...); !strings.Contains(said.err, tc.says) {
			t.Errorf("%v: %s", tc.args, said.err)
		}
	}
	if _, err := os.Stat(d.path("nixie.db")); !errors.Is(err, os.ErrNotExist) {
		t.Error("a store was made")
	}
}
