package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/nixie-go/nixie/internal/proof"
)

// first runs nixie as process 1 of a namespace, as a container would.
func (d *workspace) first(args ...string) done {
	d.t.Helper()
	if _, err := exec.LookPath("unshare"); err != nil || os.Getuid() != 0 {
		d.t.Skip("only root may make process 1, with unshare")
	}
	nixie, err := exec.LookPath("nixie")
	if err != nil {
		d.t.Fatal(err)
	}
	return d.finish(d.command("unshare", append([]string{"--pid", "--fork", "--kill-child", "--mount-proc", nixie}, args...)...))
}

// Process 1 inherits what commands leave behind. It takes no exit status of a command, and no
// zombie is left.
func TestFirstProcessReaps(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	items := 400
	if proof.IsDeep() {
		items = 10_000
	}
	var list strings.Builder
	for i := range items {
		fmt.Fprintf(&list, "%d\n", i)
	}
	d.write("items.txt", list.String())
	got := d.first("run", "items.txt", "--job", "many", "-p", "8", "--max-attempts", "1", "--no-output", "-o", "json", "--",
		"sh", "-c", `(setsid sleep 0.01 &); [ $(($1 % 5)) = 0 ] || exit $(($1 % 5 + 40))`, "sh", "{line}")
	s := d.summary(got)
	if s.Succeeded != items/5 || len(s.Groups) != 4 {
		t.Errorf("exit %d: %+v\n%s", got.code, s, got.err)
	}
	for _, group := range s.Groups { // one for each exit code
		if group.Count != items/5 {
			t.Errorf("%s: %d letters, want %d", group.Signature, group.Count, items/5)
		}
	}
	d.write("last.txt", strings.Repeat("x\n", 12)+"last\n")
	d.write("work", `#!/bin/sh
(setsid sleep 0.01 &)
[ "$1" = last ] || exit 0
for i in $(seq 1000); do
  zombies=$(cat /proc/[0-9]*/stat 2>/dev/null | grep -c ' Z ')
  [ "$zombies" = 0 ] && exit 0
  sleep 0.01
done
echo "$zombies zombies" >&2; exit 1
`)
	if got := d.first("run", "last.txt", "--job", "last", "-p", "1", "--max-attempts", "1", "--", "./work", "{line}"); got.code != 0 {
		t.Errorf("exit %d\n%s", got.code, got.err)
	}
}

// Process 1 passes signals on once, and ends as nixie ended.
func TestFirstProcessEndsAsItsChild(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	d.write("items.txt", "1\n2\n3\n")
	for _, end := range []struct {
		command string
		code    int
	}{
		{"true", 0},
		{"exit 3", 5},
		{"kill -TERM 1; echo stopped", 130},
		{"kill -KILL $PPID", 137},
	} {
		got := d.first("run", "items.txt", "--job", end.command, "-p", "1", "--max-attempts", "1", "--", "sh", "-c", end.command)
		if got.code != end.code {
			t.Errorf("%s: exit %d, want %d\n%s", end.command, got.code, end.code, got.err)
		}
		if end.code == 130 && strings.Count(got.out, "stopped") != 1 {
			t.Errorf("a signal is no orderly stop: %s%s", got.out, got.err)
		}
	}
}
