package command

import (
	"os"
	"os/signal"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// forwarded lists the signals that the first process passes on.
var forwarded = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGCONT,
}

// FirstMain must be called early in main. It returns false at once unless this is process 1, the
// first of a container. Then it runs this program again, as a child with the same arguments, and
// returns the exit code of the child: 128 + n after signal n.
//
// Process 1 inherits all processes whose parents end, and has to reap them. The child reaps its own
// commands. So neither takes an exit status from the other. Process 1 only passes on signals. If
// the child does not start, FirstMain returns false, and the program goes on without it.
func FirstMain() (code int, was bool) {
	if os.Getpid() != 1 {
		return 0, false
	}
	heard := make(chan os.Signal, 64)
	signal.Notify(heard, slices.DeleteFunc(slices.Clone(forwarded), signal.Ignored)...)
	program, err := ownExecutable()
	if err != nil {
		program = os.Args[0]
	}
	child, err := syscall.ForkExec(program, os.Args, &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: ownGroup(),
	})
	if err != nil {
		signal.Stop(heard)
		return 0, false
	}
	go func() {
		for s := range heard {
			_ = syscall.Kill(child, s.(syscall.Signal)) // it may just have ended
		}
	}()
	return reapUntil(child), true
}

// ownGroup makes the child the leader of a group of its own: what a terminal sends to a group does
// not reach the child twice. If this process has the terminal, the child gets it.
func ownGroup() *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setpgid: true}
	for fd := range 3 {
		if group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err == nil && group == unix.Getpgrp() {
			attributes.Foreground, attributes.Ctty = true, fd
			break
		}
	}
	return attributes
}

// reapUntil reaps every child until one of them has ended, and returns its exit code.
func reapUntil(child int) int {
	for {
		var status syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &status, syscall.WUNTRACED, nil)
		switch {
		case err == syscall.EINTR || ended != child:
		case status.Stopped():
			if status.StopSignal() == syscall.SIGTSTP { // no shell is there to let it go on
				_ = syscall.Kill(child, syscall.SIGCONT)
			}
		case status.Signaled():
			return 128 + int(status.Signal())
		default:
			return status.ExitStatus()
		}
	}
}
