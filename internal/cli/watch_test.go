//go:build linux

package cli_test

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// A command runs for each new group until it succeeds, once, however often the group grows. That it
// fails is shown. A signal ends the watch well, with the cursor to go on.
func TestWatchRunsACommandForEachNewGroup(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	d.write("one.txt", "a\n")
	d.write("two.txt", "b\n")
	die := func(items, job, exit string) {
		t.Helper()
		d.run(5, items, "--job", job, "--max-attempts", "1", "--", "sh", "-c", "exit "+exit)
	}
	die("one.txt", "j1", "65")
	before := strings.Fields(d.nixie(0, "dlq", "watch", "--once").err)
	if len(before) != 2 || before[0] != "cursor" {
		t.Fatalf("the cursor is %q", before)
	}
	d.write("tell.sh", "#!/bin/sh\ncat > group.json\necho \"$NIXIE_REASON $NIXIE_QUEUE $NIXIE_COUNT$NIXIE_STORE $1\" >> ledger\n"+
		"[ -e up ] && exit 0\necho no such team >&2\nexit 3\n")
	die("one.txt", "j2", "69")
	cmd := d.running(1, "dlq", "watch", "--cursor", before[1], "--interval", "100ms", "--exec", "./tell.sh argument")
	die("two.txt", "j3", "69") // of the same group
	die("two.txt", "j4", "65") // of one that was there before
	if !within(10*time.Second, func() bool { return strings.Count(d.read("out"), "\n") == 3 }) {
		t.Fatalf("what is new is not told\n%s%s", d.read("out"), d.read("err"))
	}
	d.write("up", "")
	sure := func() bool { return strings.HasSuffix(d.read("ledger"), "dependency j2 2 argument\n") }
	if !within(20*time.Second, sure) { // with the letter that came meanwhile
		t.Errorf("it was not tried again: %q", d.read("ledger"))
	}
	d.signal(cmd, syscall.SIGTERM)
	if code := ended(t, cmd); code != 0 {
		t.Errorf("exit %d", code)
	}
	if got := d.read("ledger"); !strings.HasPrefix(got, "dependency j2 1 argument\n") || strings.Contains(got, "j3") {
		t.Errorf("the command ran so: %q", got)
	}
	if !strings.Contains(d.read("group.json"), `"new_group":true`) {
		t.Errorf("its input is %s", d.read("group.json"))
	}
	errs := d.read("err")
	if !strings.Contains(errs, "--exec for group v3-") || !strings.Contains(errs, "no such team") || !strings.Contains(errs, "\ncursor ") {
		t.Errorf("stderr %q", errs)
	}
	if left := d.letters("status:open"); len(left) != 4 {
		t.Errorf("%d of 4 letters are open after a command that failed", len(left))
	}
	d.noProcess()
	d.verify()
}
