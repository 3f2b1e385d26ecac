//go:build linux

package cli_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// padded is a change that needs some room of its own.
const padded = `head -c 100000 /dev/zero > pad && ` + change

// fullMap starts a job in a repository whose first item fills a disk once, and waits until the job
// has said so. The disk is that of a folder of the workspace.
func (d *workspace) fullMap(disk string) *exec.Cmd {
	d.t.Helper()
	d.mount(disk, "size=24m")
	d.repository(4)
	filled := d.path("filled")
	script := `echo "$0" >> ` + d.path("ledger") + `; if [ $0 = f0 ] && ! [ -e ` + filled + ` ]; then touch ` + filled +
		`; cat /dev/zero > ` + d.path(disk+"/filler") + ` 2> /dev/null; fi; ` + padded
	cmd := d.running(1, mapRun([]string{"-p", "2", "--max-attempts", "1", "-o", "json"}, script)...)
	if !within(60*time.Second, func() bool { return strings.Contains(d.read("err"), " is full: free some space; trying again\n") }) {
		d.t.Errorf("it does not say that the disk is full: %s", d.read("err"))
	}
	return cmd
}

// TestMapFullDisk fills the disk of the repository, or of the worktrees and logs, under a job, and
// makes room once the job has said so. The job goes on, nothing is lost, and no item has failed.
func TestMapFullDisk(t *testing.T) {
	t.Parallel()
	for _, disk := range []string{"repo", "state"} {
		t.Run(disk, func(t *testing.T) {
			t.Parallel()
			d := newWorkspace(t)
			cmd := d.fullMap(disk)
			if err := os.Remove(d.path(disk + "/filler")); err != nil {
				t.Fatal(err)
			}
			if code := ended(t, cmd); code != 0 {
				t.Fatalf("exit code %d: %s%s", code, d.read("out"), d.read("err"))
			}
			said := d.read("err")
			if strings.Count(said, "is full") != 1 || !strings.Contains(said, "there is room again: the job goes on\n") {
				t.Errorf("it said: %s", said)
			}
			d.allMerged(4)
		})
		t.Run(disk+", interrupted", func(t *testing.T) {
			t.Parallel()
			d := newWorkspace(t)
			cmd := d.fullMap(disk)
			d.signal(cmd, os.Interrupt)
			if code := ended(t, cmd); code != 130 {
				t.Errorf("exit code %d: %s%s", code, d.read("out"), d.read("err"))
			}
			if err := os.Remove(d.path(disk + "/filler")); err != nil {
				t.Fatal(err)
			}
			d.nixie(0, "map", "resume", "--job", "j")
			d.allMerged(4)
		})
	}
	t.Run("filled by the item itself", func(t *testing.T) {
		t.Parallel()
		d := newWorkspace(t)
		d.mount("state", "size=24m")
		d.repository(3)
		d.nixie(5, mapRun([]string{"-p", "1", "--max-attempts", "1"},
			`if [ $0 = f1 ]; then cat /dev/zero > mine; fi; `+padded)...)
		if letters := d.letters(""); len(letters) != 1 || letters[0].Key != "f1" || letters[0].Reason != "resource" {
			t.Errorf("dead: %+v", letters)
		}
		d.nixie(0, "map", "merge", "--job", "j")
		if text := d.read("repo/f0") + d.read("repo/f1") + d.read("repo/f2"); text != "new\nold\nnew\n" {
			t.Errorf("merged: %q", text)
		}
		d.verify()
	})
}

// allMerged checks that each item was merged once and none has failed.
func (d *workspace) allMerged(items int) {
	d.t.Helper()
	if letters := d.letters(""); len(letters) > 0 {
		d.t.Errorf("dead: %+v", letters)
	}
	d.nixie(0, "map", "merge", "--job", "j")
	if n := strings.Count("\n"+d.git("log", "--first-parent", "--format=%s"), "\nitem f"); n != items {
		d.t.Errorf("%d merges, want %d", n, items)
	}
	if said := d.git("fsck", "--connectivity-only", "--no-dangling"); said != "" {
		d.t.Errorf("fsck: %s", said)
	}
	d.nixie(0, "map", "clean", "--job", "j")
	d.verify()
}
