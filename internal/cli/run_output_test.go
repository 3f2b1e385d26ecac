//go:build linux

package cli_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A reader that is slow keeps an item in hand for as long as it takes, and no other
// gets it meanwhile.
func TestRunOutputThatIsReadLate(t *testing.T) {
	t.Parallel()
	for _, exit := range []int{0, 3} {
		d := newWorkspace(t)
		d.write("items.txt", "a\n")
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close() //nolint:errcheck // it was only read
		cmd := d.command("nixie", "run", "items.txt", "-p", "2", "--job", "j", "--lease", "1s", "--max-attempts", "1", "--",
			"sh", "-c", fmt.Sprintf("echo ran >> ledger; head -c 300000 /dev/zero; exit %d", exit))
		cmd.Stdout = w
		if err := errors.Join(cmd.Start(), w.Close()); err != nil {
			t.Fatal(err)
		}
		if !within(20*time.Second, func() bool { return unread(t, r) >= 64<<10 }) {
			t.Fatal("nothing is written")
		}
		begun := d.leaseEnd("a")
		if !within(20*time.Second, func() bool { return d.leaseEnd("a").Sub(begun) > 3*time.Second }) {
			t.Errorf("exit %d: the lease is not renewed", exit)
		}
		if n, err := io.Copy(io.Discard, r); n != 300_000 || err != nil {
			t.Errorf("exit %d: %d bytes are read, %v", exit, n, err)
		}
		want := map[int]int{0: 0, 3: 5}[exit]
		if code := ended(t, cmd); code != want || len(d.ledger("ledger")) != 1 {
			t.Errorf("exit %d: it ends with %d, and ran %d times", exit, code, len(d.ledger("ledger")))
		}
		d.verify()
	}
}

// leaseEnd returns the end of the lease of a message; zero if it has none.
func (d *workspace) leaseEnd(key string) time.Time {
	d.t.Helper()
	var m struct {
		End *time.Time `json:"lease_expires_at"`
	}
	if err := json.Unmarshal([]byte(d.nixie(0, "message", "show", key, "-o", "json").out), &m); err != nil {
		d.t.Fatal(err)
	}
	if m.End == nil {
		return time.Time{}
	}
	return *m.End
}

// Output without a reader does not hold up the end of a run: the second interrupt
// leaves it, says whose it was, and the item that had succeeded is done.
func TestRunOutputThatIsNotRead(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	d.write("items.txt", "a\nb\nc\n")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // it is never read
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
