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

// process is a child that leads a process group. Its number is ours only until
// it is reaped, so signals and reaping exclude each other.
type process struct {
	pid    int
	exited int // file that is readable once the leader has ended
	grace  time.Duration
	forget func() // takes it off the guard's list; nil without a guard

	mu     sync.Mutex
	ended  bool // the leader has; it is too late to ask it
	reaped bool
	cause  cause
	killAt time.Time // when the grace of a group that was asked to end is over
	timer  *time.Timer
}

// end asks the group to end and sees to it after the grace. The first cause
// stays.
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

// kill ends the group.
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

// wait looks after the streams until the leader has ended and returns how it
// did, after the rest of its group was killed. When the group was asked to end,
// its other members have what is left of the grace, as far as open output shows
// that there are any.
func (p *process) wait(s *streams) (syscall.WaitStatus, error) {
	s.attend(p.exited, time.Time{})
	shut(&p.exited)
	s.release()
	p.mu.Lock()
	asked, killAt := p.cause != causeItself, p.killAt
	p.ended = true
	p.mu.Unlock()
	if asked {
		s.attend(noFile, killAt)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
	}
	// The leader is a zombie that holds the group's number: whoever gets the
	// signal belongs to it. Members may have come after an earlier kill.
	signalGroup(p.pid, syscall.SIGKILL)
	if p.forget != nil {
		p.forget()
	}
	p.reaped = true
	return reap(p.pid)
}

// exitPipe is a pipe that ends when the child has ended, where the system gives no
// handle that does. Its goroutine ends with the child.
func exitPipe(pid int) (int, error) {
	r, w, err := openPipe()
	if err != nil {
		return noFile, fmt.Errorf("pipe: %w", err)
	}
	go func() {
		awaitExit(pid)
		shut(&w)
	}()
	return r, nil
}

// signalGroup sends a signal to a group. That there is nobody left to get it is
// no error.
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
