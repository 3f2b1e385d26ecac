//go:build linux

package cli_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// crowded starts a job on a small disk that the command of item b fills, and waits
// until the job has said so.
func (d *workspace) crowded() *exec.Cmd {
	d.t.Helper()
	d.mount("full", "size=80m")
	d.write("a.txt", "a\nb\nc\nd\n")
	d.write("work", "#!/bin/sh\necho $1 >> ledger\n[ $1 != b ] || cat /dev/zero > full/filler 2> /dev/null\nexit 0\n")
	d.env = append(d.env, "NIXIE_STORE=sqlite://"+d.path("full/s.db"))
	cmd := d.running(2, "run", "a.txt", "--job", "j", "-p", "1", "-o", "json", "--", "./work", "{line}")
	said := "nixie: disk of store " + d.path("full/s.db") + " is full: free some space and repeat, nothing was changed: "
	if !within(30*time.Second, func() bool {
		return strings.Contains(d.read("err"), said) && strings.HasSuffix(d.read("err"), "; trying again\n")
	}) {
		d.t.Errorf("it does not say that the disk is full: %s", d.read("err"))
	}
	return cmd
}

// makeRoom removes what fills the disk.
func (d *workspace) makeRoom() {
	d.t.Helper()
	if err := os.Remove(d.path("full/filler")); err != nil {
		d.t.Fatal(err)
	}
}

// TestRunGoesOnWhenThereIsRoom fills the disk under a job and makes room once the job
// has said so: it goes on by itself, and nothing is lost or done twice.
func TestRunGoesOnWhenThereIsRoom(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	cmd := d.crowded()
	d.nixie(0, "queue", "list") // readers go on
	d.makeRoom()
	if code := ended(t, cmd); code != 0 {
		t.Errorf("exit code %d: %s%s", code, d.read("out"), d.read("err"))
	}
	if done := strings.Join(d.ledger("ledger"), " "); done != "a b c d" {
		t.Errorf("commands ran for %s", done)
	}
	d.verify()
}

// TestRunKilledOnAFullDisk kills a job that waits for room: the same command line goes on
// once there is some.
func TestRunKilledOnAFullDisk(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	cmd := d.crowded()
	d.signal(cmd, os.Kill)
	ended(t, cmd)
	d.makeRoom()
	if s := d.run(0, "a.txt", "--job", "j", "--", "true"); s.Items != 4 || s.Succeeded != 4 {
		t.Errorf("after space was freed: %+v", s)
	}
	d.verify()
}

// TestRunEndsWhenItsStoreIsTakenAway deletes the file of the store under a job: the job
// ends at once with an error, and says of nothing that it is done.
func TestRunEndsWhenItsStoreIsTakenAway(t *testing.T) {
	t.Parallel()
	for name, take := range map[string]string{
		"deleted":  "rm s.db",
		"log":      "rm s.db-wal",
		"replaced": "cp s.db copy && mv copy s.db",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newWorkspace(t)
			d.write("a.txt", "a\nb\nc\nd\n")
			d.write("work", "#!/bin/sh\n[ $1 != b ] || { "+take+"; }\n")
			d.env = append(d.env, "NIXIE_STORE=sqlite://"+d.path("s.db"))
			r := d.nixie(1, "run", "a.txt", "--job", "j", "-p", "1", "-o", "json", "--", "./work", "{line}")
			if !strings.Contains(r.err, "while it was in use") {
				t.Errorf("standard error: %s", r.err)
			}
			if r.out != "" {
				t.Errorf("it says what is done: %s", r.out)
			}
		})
	}
}
