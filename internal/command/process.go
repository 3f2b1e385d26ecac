//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package command

import (
	"fmt"
	"sync"
	"syscall"
	"time"
)

type cause int

const (
	causeItself cause = iota
	causeTimeout
	causeContext
)

// process is a child that leads a process group. Its number is ours until it is reaped, so signals
// and reaping exclude each other.
type process struct {
	pid    int
	exited int // a file that becomes readable when the leader has ended
	grace  time.Duration
	forget func() // takes the group off the guard's list; nil without a guard

	mu     sync.Mutex
	ended  bool // the leader has ended; it is too late to ask it
	reaped bool
	cause  cause
	killAt time.Time // the end of the grace of a group that was asked to end
	timer  *time.Timer
}

// end asks the group to end and kills it after the grace. The first cause stays.
func (p *process) end(why cause) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended || p.cause != causeItself {
		return
	}
	p.cause, p.killAt = why, time.Now().Add(p.grace)
	if p.grace == 0 {
		p.killLocked()
		return
	}
	signalGroup(p.pid, syscall.SIGTERM)
	p.timer = time.AfterFunc(p.grace, p.kill)
}

// kill kills the group.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.killLocked()
}

func (p *process) killLocked() {
	if !p.reaped {
		signalGroup(p.pid, syscall.SIGKILL)
	}
}

// wait pumps the streams until the leader has ended, kills the rest of its group, and returns the
// status of the leader. When the group was asked to end, its other members have the rest of the
// grace. Open outputs show that there are any.
func (p *process) wait(s *streams) (syscall.WaitStatus, error) {
	s.pump(p.exited, time.Time{})
	closeFD(&p.exited)
	s.release()
	p.mu.Lock()
	asked, killAt := p.cause != causeItself, p.killAt
	p.ended = true
	p.mu.Unlock()
	if asked {
		s.pump(noFile, killAt)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
	}
	// The leader is a zombie that holds the group's number, so only members get the signal. Members
	// may have come after an earlier kill.
	signalGroup(p.pid, syscall.SIGKILL)
	if p.forget != nil {
		p.forget()
	}
	p.reaped = true
	return reap(p.pid)
}

// exitPipe makes a pipe that ends when the child has ended, for systems without a process handle.
// Its goroutine ends with the child.
func exitPipe(pid int) (int, error) {
	r, w, err := openPipe()
	if err != nil {
		return noFile, fmt.Errorf("pipe: %w", err)
	}
	go func() {
		awaitExit(pid)
		closeFD(&w)
	}()
	return r, nil
}

// signalGroup sends a signal to a group. A group without members is no error.
func signalGroup(group int, signal syscall.Signal) {
	_ = syscall.Kill(-group, signal) // ESRCH: gone; EPERM: only members of another user are left
}

func reap(pid int) (syscall.WaitStatus, error) {
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(pid, &status, 0, nil)
		if err == nil {
			return status, nil
		}
		if err != syscall.EINTR {
			return status, fmt.Errorf("wait for process %d: %w", pid, err)
		}
	}
}
