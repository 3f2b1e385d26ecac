package command

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// groupAttributes makes a child the leader of a group of its own. The child gets SIGKILL when the
// thread that forks it ends, unless it survives that. The handle becomes readable when the child
// has ended; kernels before 5.3 give none.
func groupAttributes(handle *int, survives bool) *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setpgid: true, PidFD: handle}
	if !survives {
		attributes.Pdeathsig = syscall.SIGKILL
	}
	return attributes
}

// awaitExit returns when the child has ended and leaves it a zombie.
func awaitExit(pid int) {
	for unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
}

func openPipe() (r, w int, err error) {
	var fds [2]int
	err = unix.Pipe2(fds[:], unix.O_CLOEXEC)
	return fds[0], fds[1], err
}

// unread returns the number of bytes in a pipe that were not read.
func unread(pipe int) int {
	n, err := unix.IoctlGetInt(pipe, unix.TIOCINQ)
	if err != nil {
		return 0
	}
	return n
}

// watchInput returns when exited is readable. Before that it calls closed when the
// last reader of the pipe is gone. It keeps no end of the pipe open, as poll would.
func watchInput(exited, pipe int, closed func()) {
	watch, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return // the next write tells it
	}
	defer unix.Close(watch) //nolint:errcheck // it was only read
	for fd, events := range map[int]uint32{exited: unix.EPOLLIN, pipe: unix.EPOLLET} {
		if unix.EpollCtl(watch, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)}) != nil {
			return
		}
	}
	for {
		var events [2]unix.EpollEvent
		n, err := unix.EpollWait(watch, events[:], -1)
		if err != nil && err != unix.EINTR {
			return
		}
		for _, event := range events[:max(n, 0)] {
			if event.Fd == int32(exited) {
				return
			}
			closed()
		}
	}
}
