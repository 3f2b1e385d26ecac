//go:build unix

package cli_test

import (
	"os"
	"strings"
	"testing"
)

// An item that removes or breaks its own worktree fails itself, after its attempts, and nothing
// else: the items before and after it are merged, each by its only attempt.
func TestMapOwnWorktree(t *testing.T) {
	t.Parallel()
	const gitDir = `$(git rev-parse --git-dir)`
	for name, breaks := range map[string]string{
		"removes it":               `rm -rf "$PWD"`,
		"lets git remove it":       `git worktree remove --force .`,
		"removes what is above it": `cd / && rm -rf "$(dirname "$OLDPWD")"`,
		"a file for a folder":      `d=$PWD; cd / && rm -rf "$d" && echo x > "$d"`,
		"no .git":                  `rm .git; exit 3`,
		"a broken .git":            `echo x > .git; exit 3`,
		".git of another":          `sed s,/worktrees/.*,, .git > x; mv x .git; exit 3`,
		"a repository of its own":  `rm .git; git init -q && git add -A && git commit -qm own; exit 3`,
		"no HEAD":                  `rm "` + gitDir + `/HEAD"`,
		"a broken HEAD":            `echo x > "` + gitDir + `/HEAD"`,
		"a broken index":           `echo x > "` + gitDir + `/index"; exit 3`,
		"a lock of the index":      `touch "` + gitDir + `/index.lock"; exit 3`,
		"a broken commondir":       `echo /none > "` + gitDir + `/commondir"; exit 3`,
		"broken settings":          `git config extensions.worktreeConfig true; echo [ > "` + gitDir + `/config.worktree"; exit 3`,
		"another work tree":        `git config extensions.worktreeConfig true; git config --worktree core.worktree "$NIXIE_HELD"; exit 3`,
		"no permissions":           `mkdir d; touch d/x; chmod 0 d .; exit 3`,
		"no branch of the job":     `git branch -D nixie/j; exit 3`,
		"another name of it":       `git branch -m nixie/j taken; exit 3`,
		"the branch of the job":    `git checkout -q nixie/j; echo x > f1; git commit -qam wrong; exit 3`,
		"the branch elsewhere":     `git worktree add -q "$NIXIE_HELD/look" nixie/j; exit 3`,
		"a rebase in the middle": `git checkout -q -b a; echo a > f1; git commit -qam a; git checkout -q -b b HEAD~; echo b > f1
git commit -qam b; git rebase -q a`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newWorkspace(t)
			d.repository(3)
			if err := os.MkdirAll(d.path("held/deep"), 0o755); err != nil {
				t.Fatal(err)
			}
			d.write("held/deep/mine", "mine\n")
			d.env = append(d.env, "NIXIE_HELD="+d.path("held"))
			before := d.git("rev-parse", "HEAD")
			said := d.nixie(5, "map", "run", "files.txt", "--repo", "repo", "--job", "j", "--no-output", "-p", "1", "--max-attempts", "2",
				"--backoff", "0", "--step", `shell: if [ $NIXIE_FIELD_LINE = f1 ]; then `+breaks+
					`; else echo new > "$NIXIE_FIELD_LINE"; fi`,
				"--step", `shell: [ $NIXIE_FIELD_LINE != f1 ] && git commit -qam "change $NIXIE_FIELD_LINE"`)
			if !strings.Contains(said.err, "2 succeeded, 1 dead (4 attempts in this run)") {
				t.Error(said.err)
			}
			if letters := d.letters(""); len(letters) != 1 {
				t.Errorf("dead: %+v", letters)
			}
			if d.git("rev-parse", "HEAD") != before || d.git("status", "--porcelain") != "" || d.read("held/deep/mine") != "mine\n" {
				t.Error("what was the user's changed")
			}
			d.nixie(0, "map", "merge", "--job", "j")
			if text := d.read("repo/f0") + d.read("repo/f1") + d.read("repo/f2"); text != "new\nold\nnew\n" {
				t.Errorf("merged: %q", text)
			}
			if _, err := os.Stat(d.path("held/look")); err == nil {
				d.git("worktree", "remove", "--force", d.path("held/look"))
			}
			d.nixie(0, "map", "clean", "--job", "j")
			if trees := d.git("worktree", "list"); strings.Contains(trees, "\n") || strings.Contains(d.git("for-each-ref"), "nixie") {
				t.Errorf("left: %s", trees)
			}
			d.verify()
		})
	}
}
