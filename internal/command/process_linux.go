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
