package cli_test

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Output that nobody reads does not hold up the end of a run: the second interrupt
// leaves it, says whose it was, and the item that had succeeded is done.
func TestRunOutputThatNobodyReads(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("items.txt", "a\nb\nc\n")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // nobody reads it
	defer w.Close() //nolint:errcheck // likewise
	errs, err := os.Create(d.path("err"))
	if err != nil {
		t.Fatal(err)
	}
	defer errs.Close() //nolint:errcheck // it is read by its name
	cmd := d.command("nixie", "run", "items.txt", "-p", "1", "--job", "j", "--", "head", "-c", "300000", "/dev/zero")
	cmd.Stdout, cmd.Stderr = w, errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if !within(10*time.Second, func() bool { return unread(t, r) >= 64<<10 }) {
		t.Fatalf("nothing is written: %s", d.read("err"))
	}
	d.signal(cmd, syscall.SIGTERM)
	if !within(10*time.Second, func() bool { return strings.Contains(d.read("err"), "may finish") }) {
		t.Fatal("the first signal is not noticed")
	}
	d.signal(cmd, os.Interrupt)
	if code := ended(t, cmd); code == 0 || !strings.Contains(d.read("err"), "nixie: the output of item a was not written") {
		t.Errorf("exit %d: %s", code, d.read("err"))
	}
	if s := d.run(0, "items.txt", "--job", "j", "--no-output", "--", "true"); s.Succeeded != 3 || s.Attempts != 2 {
		t.Errorf("the run after it: %+v", s)
	}
	d.verify()
}
