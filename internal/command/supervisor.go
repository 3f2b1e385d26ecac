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

// GuardMain is to be called first of all in main and TestMain. It reports false
// at once unless [StartGuard] started this process as a supervisor; then it
// returns true when the supervisor's work is done, and the caller should exit.
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
	_, _ = link.Read(make([]byte, 1)) // whatever ends it, the runner is gone
	if err := endListed(file, true); err != nil {
		return true // the file stays for the next owner to see to
	}
	_ = os.Remove(path) // an empty list that stays is harmless
	return true
}

// EndAbandoned is what a restart calls for an owner whose lease was abandoned,
// before it runs the message again: when it returns nil, no process that the
// owner listed is left. It waits up to wait while the owner's supervisor is at
// work, and ends what is listed itself when neither runner nor supervisor live.
// An owner that is still alive after wait is an error of [nixie.CodeConflict],
// and nothing of it was touched. An owner without a file has left nothing.
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

// endListed kills the groups that the file lists and waits until they are gone.
// At once says that the owner ended a moment ago.
func endListed(file *os.File, atOnce bool) error {
	data, err := io.ReadAll(io.NewSectionReader(file, 0, headerSize+maxSlots*slotSize))
	if err != nil {
		return err
	}
	g := parseGroups(data)
	if g.mark == "" || g.system != systemName() {
		return nil // of another boot or container: none of it lives here
	}
	return untilCalm(func() (int, error) { return endOnce(g, atOnce) })
}

// calmLooks is how many looks in a row have to find nothing. One is not enough:
// a list of processes is read one by one, so that a process may start after its
// place was passed, by a parent that is dead when its own place comes.
const calmLooks = 3

// untilCalm repeats look, which ends processes and says how many it saw, until
// none are left.
func untilCalm(look func() (int, error)) error {
	end := time.NewTimer(endWait)
	defer end.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for calm := 0; ; {
		left, err := look()
		if err != nil {
			return err
		}
		calm++
		if left > 0 {
			calm = 0
		}
		if calm == calmLooks {
			return nil
		}
		select {
		case <-tick.C:
		case <-end.C:
			return nixie.Errorf(nixie.CodeUnavailable, "%d processes did not end %s after SIGKILL", left, endWait)
		}
	}
}
