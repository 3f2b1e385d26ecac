//go:build unix

package cli_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// fixing is a run of job fix on a repository. The second file of each fails until it is repaired.
func (d *workspace) fixing(folder, list string) []string {
	script := `echo "$0" >> ` + d.path("ledger") + `; case $0 in *1) [ -e ` + d.path("repaired") + ` ] || exit 3 ;; esac; sleep 0.05
` + change
	return []string{"map", "run", d.path(list), "--repo", folder, "--job", "fix", "--no-output", "-p", "2", "--max-attempts", "1",
		"--max-crashes", "9", "--", "sh", "-c", script, "{line}"}
}

// queues returns the queue of each job, by its repository.
func (d *workspace) queues() map[string]string {
	d.t.Helper()
	var list []struct{ Job, Queue, Repo string }
	out := d.nixie(0, "map", "list", "-o", "json").out
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		d.t.Fatalf("%v: %s", err, out)
	}
	all := map[string]string{}
	for _, j := range list {
		all[strings.TrimPrefix(j.Repo, d.dir+"/")] = j.Job + " " + j.Queue
	}
	return all
}

// deadOf returns the dead items of job fix.
func (d *workspace) deadOf(flags ...string) (keys []string) {
	d.t.Helper()
	out := d.nixie(0, append([]string{"map", "dlq", "list", "--job", "fix", "-o", "jsonl", "--filter", "status:open"}, flags...)...).out
	for line := range strings.Lines(out) {
		var l struct{ Key string }
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			d.t.Fatalf("%v: %s", err, line)
		}
		keys = append(keys, l.Key)
	}
	slices.Sort(keys)
	return keys
}

// inFolder runs a command line in a folder.
func (d *workspace) inFolder(folder string, code int, args ...string) done {
	d.t.Helper()
	cmd := d.command("nixie", args...)
	cmd.Dir = d.path(folder)
	r := d.finish(cmd)
	if r.code != code {
		d.t.Fatalf("in %s nixie %q: exit %d, want %d\n%s%s", folder, args, r.code, code, r.out, r.err)
	}
	return r
}

// Two repositories have a job of one name in one store. Each is killed, resumed, redriven, merged
// and cleaned, and the other does not notice. A link, a linked worktree and a new folder of a
// repository are the same repository.
func TestMapTwoRepositories(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	d.repositoryIn("repo", "files.txt", "f", 10)
	d.repositoryIn("other", "others.txt", "g", 10)
	hash := fmt.Sprintf("~%x", sha256.Sum256([]byte(d.path("other/.git"))))[:9]
	want := map[string]string{"repo": "fix mapreduce/fix", "other": "fix mapreduce/fix" + hash}
	d.killedAndResumed()
	if is := d.queues(); fmt.Sprint(is) != fmt.Sprint(want) {
		t.Errorf("queues %v, want %v", is, want)
	}
	d.foundByNames(hash)

	// Redriven in one, the other stays.
	d.write("repaired", "")
	said := d.nixie(0, "map", "dlq", "retry", "--job", "fix", "--repo", "other", "--reason", "repaired", "--yes").err
	left := fmt.Sprint(d.deadOf("--repo", "repo"), d.deadOf("--repo", "other"))
	if !strings.Contains(said, "10 items: 10 succeeded") || left != "[f1] []" {
		t.Error(left, said)
	}
	d.nixie(0, "map", "merge", "--job", "fix", "--repo", "other")
	d.sameRepository()
	d.movedRepository()
	if is := d.queues(); is["moved"] != want["repo"] || len(is) != 2 {
		t.Errorf("queues %v", is)
	}
	d.mergedOnce("moved", "f")
	d.mergedOnce("other", "g")

	// Cleaned in one, the other stays. Begun again, a job has the queue that it had.
	d.nixie(0, "map", "clean", "--job", "fix", "--repo", "other")
	if is := d.queues(); len(is) != 1 || is["moved"] == "" || d.gitIn("moved", "for-each-ref", "refs/heads/nixie") == "" {
		t.Errorf("after the clean: %v", is)
	}
	said = d.nixie(0, d.fixing("other", "others.txt")...).err
	if !strings.Contains(said, "10 items, 0 new") || d.queues()["other"] != want["other"] {
		t.Errorf("begun again: %v, %s", d.queues(), said)
	}
	d.nixie(0, "map", "clean", "--job", "fix", "--repo", "other")
	d.nixie(0, "map", "clean", "--job", "fix")
	for _, folder := range []string{"moved", "other"} {
		if trees := d.gitIn(folder, "worktree", "list"); strings.Contains(trees, "\n") ||
			strings.Contains(d.gitIn(folder, "for-each-ref"), "nixie") {
			t.Errorf("%s: left: %s", folder, trees)
		}
	}
	d.noProcess()
	d.verify()
}

// killedAndResumed kills the jobs of both repositories, and resumes each: the first while it is the
// only one of its name, the second in its folder.
func (d *workspace) killedAndResumed() {
	d.t.Helper()
	d.killAfter(3, d.fixing("repo", "files.txt"))
	d.nixie(5, "map", "resume", "--job", "fix")
	d.killAfter(3, d.fixing("other", "others.txt"))
	said := d.nixie(2, "map", "resume", "--job", "fix").err
	if !strings.Contains(said, "2 repositories have a job fix: name one by --repo: ") || !strings.Contains(said, d.path("other/.git")) {
		d.t.Error(said)
	}
	said = d.inFolder("other", 5, "map", "resume", "--job", "fix").err
	if !strings.Contains(said, "9 succeeded, 1 dead") || !strings.Contains(said, "map dlq retry --job fix --repo "+d.path("other")+" ") {
		d.t.Error(said)
	}
}

// foundByNames finds what died by the repository, by its folder and by the whole name.
func (d *workspace) foundByNames(hash string) {
	d.t.Helper()
	for at, want := range map[string]string{"other": "[g1]", "other/": "[g1]", "repo": "[f1]"} {
		if is := d.deadOf("--repo", at); fmt.Sprint(is) != want {
			d.t.Errorf("%s: dead %v, want %s", at, is, want)
		}
	}
	if out := d.nixie(0, "map", "dlq", "list", "--job", "fix"+hash, "-o", "jsonl").out; !strings.Contains(out, `"key":"g1"`) {
		d.t.Error(out)
	}
	if said := d.nixie(2, "map", "dlq", "list").err; !strings.Contains(said, "name one of fix, fix"+hash+" by --job") {
		d.t.Error(said)
	}
	if said := d.nixie(1, "map", "show", "--job", "fix", "--repo", "."); !strings.Contains(said.err, "is not in a git repository") {
		d.t.Error(said.err)
	}
}

// sameRepository goes on with the job by a link and by a linked worktree.
func (d *workspace) sameRepository() {
	d.t.Helper()
	if err := os.Rename(d.path("repaired"), d.path("repaired later")); err != nil {
		d.t.Fatal(err)
	}
	if err := os.Symlink(d.path("repo"), d.path("link")); err != nil {
		d.t.Fatal(err)
	}
	d.git("worktree", "add", "--quiet", "--detach", d.path("tree"))
	for _, folder := range []string{"link", "tree"} {
		if said := d.nixie(5, d.fixing(folder, "files.txt")...).err; !strings.Contains(said, "10 items, 0 new") {
			d.t.Errorf("%s: %s", folder, said)
		}
		if is := d.deadOf("--repo", folder); fmt.Sprint(is) != "[f1]" {
			d.t.Errorf("%s: dead %v", folder, is)
		}
	}
	d.git("worktree", "remove", d.path("tree"))
}

// movedRepository moves the first repository. It has its job and the worktree that was kept, and
// goes on.
func (d *workspace) movedRepository() {
	d.t.Helper()
	if err := os.Rename(d.path("repo"), d.path("moved")); err != nil {
		d.t.Fatal(err)
	}
	d.write("repaired", "")
	if said := d.nixie(1, "map", "merge", "--job", "fix", "--repo", "link").err; !strings.Contains(said, "is not in a git repository") {
		d.t.Error(said)
	}
	kept := d.inFolder("moved", 0, "map", "kept", "--job", "fix", "-o", "csv").out
	if strings.Count(kept, "\n") != 2 || !strings.Contains(kept, "\nf1,") {
		d.t.Errorf("kept: %s", kept)
	}
	d.nixie(0, "map", "dlq", "retry", "--job", "fix", "--repo", "moved", "--reason", "repaired", "--yes")
	d.nixie(0, "map", "merge", "--job", "fix", "--repo", "moved")
}

// mergedOnce checks that each of ten files of a repository was merged once.
func (d *workspace) mergedOnce(folder, begin string) {
	d.t.Helper()
	merges := "\n" + d.gitIn(folder, "log", "--format=%s") + "\n"
	for n := range 10 {
		if times := strings.Count(merges, fmt.Sprintf("\nitem %s%d\n", begin, n)); times != 1 {
			d.t.Errorf("%s%d is merged %d times", begin, n, times)
		}
	}
}
