//go:build unix

package cli_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nixie-go/nixie/internal/proof"
)

// TestR55_MapKilledAtAnyMoment kills map runs of up to 64 attempts at once with kill -9. Each
// item ends once: merged, or dead with its worktree kept. Nothing is merged twice, and what
// an attempt had that is gone (a process, a lock, a worktree, a branch) is gone as well.
func TestR55_MapKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	proof.Run(t, "map-kills", func(t *testing.T, seed uint64) int {
		rng := rand.New(rand.NewPCG(seed, 0))
		return killMaps(t, rng, 2+rng.IntN(63), func(d *workspace, flags []string) []string {
			return mapRun(append(flags, "--max-attempts", "1"),
				`echo "$0" >> `+d.path("ledger")+`; case $0 in *7) echo broken >&2; exit 3 ;; *) `+change+` ;; esac`)
		})
	})
}

// killMaps kills a map twice, lets it end, and looks at everything that it left. Its command writes
// each item to the file ledger, and fails on those that end in 7.
func killMaps(t *testing.T, rng *rand.Rand, parallel int, run func(d *workspace, flags []string) []string) int {
	const kills = 2
	items := parallel + 8
	d := newWorkspace(t)
	d.repository(items)
	args := run(d, []string{"-p", fmt.Sprint(parallel), "--max-crashes", "9"})
	for range kills {
		d.killAfter(1+rng.IntN(items/kills-3), args)
		d.verify()
	}
	d.nixie(5, args...)
	d.nixie(0, "map", "merge", "--repo", "repo", "--job", "j")
	merges := d.git("log", "--first-parent", "--format=%s")
	var dead []string
	for n := range items {
		item := fmt.Sprint("f", n)
		want := 1
		if strings.HasSuffix(item, "7") {
			dead, want = append(dead, item), 0
		}
		if times := strings.Count("\n"+merges+"\n", "\nitem "+item+"\n"); times != want {
			t.Errorf("%s is merged %d times, want %d", item, times, want)
		}
	}
	d.nothingWithoutOwner(dead, parallel)
	d.nixie(0, "map", "clean", "--repo", "repo", "--job", "j")
	if trees := d.git("worktree", "list"); strings.Contains(trees, "\n") || strings.Contains(d.git("for-each-ref"), "nixie") {
		t.Errorf("left: %s", trees)
	}
	d.verify()
	return kills
}

// nothingWithoutOwner looks for what killed runs left: of the dead items the worktrees are
// there and their branches, and of others nothing.
func (d *workspace) nothingWithoutOwner(dead []string, parallel int) {
	d.t.Helper()
	d.noProcess()
	kept := strings.Fields(d.nixie(0, "map", "kept", "--job", "j", "-o", "csv").out)
	if len(kept) != 1+len(dead) {
		d.t.Errorf("kept: %q, want those of %q", kept, dead)
	}
	if letters := d.letters(""); len(letters) != len(dead) {
		d.t.Errorf("%d letters, want those of %q", len(letters), dead)
	}
	if trees := strings.Count(d.git("worktree", "list"), "\n"); trees > len(dead)+parallel {
		d.t.Errorf("%d worktrees besides the checkout", trees)
	}
	if branches := strings.Fields(d.git("for-each-ref", "--format=%(refname)", "refs/heads/nixie-attempts/")); len(branches) != len(dead) {
		d.t.Errorf("branches of attempts: %q, want those of %q", branches, dead)
	}
	if said := d.git("fsck", "--connectivity-only", "--no-dangling"); said != "" {
		d.t.Errorf("fsck: %s", said)
	}
	err := filepath.WalkDir(d.path("repo/.git"), func(path string, e fs.DirEntry, err error) error {
		if e.Name() == "worktrees" {
			return filepath.SkipDir // those that are in the pool are made anew if they have one
		}
		if err == nil && strings.HasSuffix(path, ".lock") && e.Name() != "nixie.lock" { // that one is ours, and always free
			d.t.Errorf("a lock is left: %s", path)
		}
		return err
	})
	if err != nil {
		d.t.Error(err)
	}
}
