//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package command

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// groupAttributes makes a child the leader of a group of its own. These systems give no handle to
// wait for.
func groupAttributes(*int, bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// awaitExit returns when the child has ended and leaves it a zombie. When the
// system cannot tell, reaping waits instead.
func awaitExit(pid int) {
	queue, err := unix.Kqueue()
	if err != nil {
		return
	}
	defer unix.Close(queue)
	var change [1]unix.Kevent_t
	unix.SetKevent(&change[0], pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	change[0].Fflags = unix.NOTE_EXIT
	for {
		var got [1]unix.Kevent_t
		_, err := unix.Kevent(queue, change[:], got[:], nil)
		if err != unix.EINTR {
			return // ended, or ESRCH: ended before
		}
	}
}

func openPipe() (r, w int, err error) {
	var fds [2]int
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err = unix.Pipe(fds[:]); err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	return fds[0], fds[1], err
}

// unread returns the number of bytes in a pipe that were not read. The end for writing does not
// tell it here.
func unread(int) int { return 0 }

// watchInput does nothing here: the next write tells that no process reads the pipe.
func watchInput(_, _ int, _ func()) {}
