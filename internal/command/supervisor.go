//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package command

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/nixie-go/nixie"
)

// GuardMain must be called first in main and TestMain. It returns false at once unless [StartGuard]
// started this process as a supervisor. A supervisor returns true when its work is done, and the
// caller should exit.
func GuardMain() bool {
	path := os.Getenv(fileVariable)
	if path == "" || len(os.Args) != 2 || os.Args[1] != guardArgument {
		return false
	}
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE, syscall.SIGUSR1, syscall.SIGUSR2)
	link, file := os.NewFile(3, "link"), os.NewFile(4, "groups")
	if _, err := link.Write([]byte{1}); err != nil {
		return true // the runner is gone and has not started anything
	}
	_, _ = link.Read(make([]byte, 1)) // any end of the link means that the runner is gone
	if err := endListed(file, true); err != nil {
		return true // the file stays, and the next owner ends its groups
	}
	_ = os.Remove(path) // an empty list that stays is harmless
	return true
}

// EndAbandoned ends the processes of a dead owner. A restart calls it before it runs a message of
// an abandoned lease again. When it returns nil, no process that the owner listed is left. It waits
// for the owner's supervisor at most the time wait; if runner and supervisor are dead, it kills the
// listed groups itself. If the owner is still alive after wait, it returns [nixie.CodeConflict] and
// touches nothing. An owner without a file has left nothing.
func EndAbandoned(dir, owner string, wait time.Duration) error {
	path := filepath.Join(dir, groupsFile(owner))
	file, err := awaitLock(path, wait)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return guardError(owner, err)
	}
	err = endListed(file, false)
	if err == nil {
		err = os.Remove(path)
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return nixie.Errorf(nixie.CodeUnavailable, "process groups of owner %q: %w", owner, err)
	}
	return nil
}

func awaitLock(path string, wait time.Duration) (*os.File, error) {
	end := time.NewTimer(wait)
	defer end.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		file, err := lockGroups(path, 0)
		if !errors.Is(err, errLocked) {
			return file, err
		}
		select {
		case <-tick.C:
		case <-end.C:
			return nil, err
		}
	}
}

// endListed kills the groups that the file lists and waits until they are gone. The flag atOnce
// means that the owner ended a moment ago.
func endListed(file *os.File, atOnce bool) error {
	data, err := io.ReadAll(io.NewSectionReader(file, 0, headerSize+maxSlots*slotSize))
	if err != nil {
		return err
	}
	g := parseGroups(data)
	if g.mark == "" || g.system != systemName() {
		return nil // of another boot or container: its numbers mean other processes here
	}
	return untilGone(func() (int, error) { return killOnce(g, atOnce) })
}

// emptyScans is the number of scans in a row that must find nothing. One is not enough: a scan
// reads the processes one by one. A process may start behind the scan's position, from a parent
// that is dead when the scan reaches it.
const emptyScans = 3

// untilGone repeats scan, which kills processes and returns their number, until none is left.
func untilGone(scan func() (int, error)) error {
	end := time.NewTimer(endWait)
	defer end.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for empty := 0; ; {
		left, err := scan()
		if err != nil {
			return err
		}
		empty++
		if left > 0 {
			empty = 0
		}
		if empty == emptyScans {
			return nil
		}
		select {
		case <-tick.C:
		case <-end.C:
			return nixie.Errorf(nixie.CodeUnavailable, "%d processes did not end %s after SIGKILL", left, endWait)
		}
	}
}
