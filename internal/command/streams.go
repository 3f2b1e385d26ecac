//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package command

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// streams are our ends of the three pipes of a child. The thread that waits for the child pumps all
// of them by poll: goroutines would cost more than a short command.
type streams struct {
	child  [3]int // ends that the child gets
	out    outlet
	err    outlet
	in     int    // noFile after all of stdin is in the pipe
	unsent []byte // of stdin
	buf    []byte // that outputs are read into
}

// outlet reads one output and keeps its tail.
type outlet struct {
	fd     int // noFile when it has ended
	ring   ring
	pass   io.Writer
	failed error // of pass
}

const (
	noFile = -1 // poll ignores this number

	atOnce  = 4 << 10  // bytes that every empty pipe takes
	readMin = 1 << 10  // size of the buffer at first
	readMax = 32 << 10 // after it was full once
)

func openStreams(spec *Spec) (*streams, error) {
	s := &streams{child: [3]int{noFile, noFile, noFile}, in: noFile}
	limit := spec.tailLimit()
	s.out = outlet{fd: noFile, ring: ring{limit: limit}, pass: spec.Stdout}
	s.err = outlet{fd: noFile, ring: ring{limit: limit}, pass: spec.Stderr}
	if err := s.open(spec.Stdin); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *streams) open(stdin []byte) error {
	if err := s.openIn(stdin); err != nil {
		return err
	}
	for i, outlet := range s.outlets() {
		r, w, err := openPipe()
		if err != nil {
			return fmt.Errorf("pipe: %w", err)
		}
		outlet.fd, s.child[1+i] = r, w
	}
	return nil
}

// files returns the child's ends in the form of ForkExec.
func (s *streams) files() []uintptr {
	return []uintptr{uintptr(s.child[0]), uintptr(s.child[1]), uintptr(s.child[2])}
}

func (s *streams) outlets() [2]*outlet { return [2]*outlet{&s.out, &s.err} }

// openIn opens the pipe of stdin and fills it before the child starts.
func (s *streams) openIn(stdin []byte) error {
	if len(stdin) == 0 {
		fd, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open %s: %w", os.DevNull, err)
		}
		s.child[0] = fd
		return nil
	}
	r, w, err := openPipe()
	if err != nil {
		return fmt.Errorf("pipe: %w", err)
	}
	s.child[0], s.in, s.unsent = r, w, stdin
	if len(stdin) > atOnce {
		if err := unix.SetNonblock(w, true); err != nil {
			return fmt.Errorf("pipe: %w", err)
		}
	}
	s.feed()
	return nil
}

// feed writes as much of stdin as the pipe takes.
func (s *streams) feed() {
	n, err := unix.Write(s.in, s.unsent)
	if err == unix.EAGAIN || err == unix.EINTR {
		return
	}
	// EPIPE: the command need not read all of stdin.
	if s.unsent = s.unsent[max(n, 0):]; err != nil || len(s.unsent) == 0 {
		closeFD(&s.in)
	}
}

// pump feeds stdin and reads the outputs until notice is readable or, when notice is noFile, until
// both outputs have ended. It reports false when the time until came first; a zero time never does.
func (s *streams) pump(notice int, until time.Time) bool {
	for notice != noFile || s.out.fd != noFile || s.err.fd != noFile {
		wait := -1
		if !until.IsZero() {
			left := time.Until(until)
			if left <= 0 {
				return false
			}
			wait = int((left + time.Millisecond - 1) / time.Millisecond)
		}
		fds := [...]unix.PollFd{
			{Fd: int32(notice), Events: unix.POLLIN},
			{Fd: int32(s.out.fd), Events: unix.POLLIN},
			{Fd: int32(s.err.fd), Events: unix.POLLIN},
			{Fd: int32(s.in), Events: unix.POLLOUT},
		}
		if n, err := unix.Poll(fds[:], wait); err != nil || n == 0 {
			continue // a signal, or the time is up, which the loop checks at its beginning
		}
		for i, outlet := range s.outlets() {
			if fds[1+i].Revents != 0 {
				s.read(outlet)
			}
		}
		if fds[3].Revents != 0 {
			s.feed()
		}
		if fds[0].Revents != 0 {
			return true
		}
	}
	return true
}

// read reads once from an output that has data or has ended.
func (s *streams) read(o *outlet) {
	if s.buf == nil {
		s.buf = make([]byte, readMin)
	}
	n, err := unix.Read(o.fd, s.buf)
	if err == unix.EINTR {
		return
	}
	if n <= 0 {
		closeFD(&o.fd)
		return
	}
	o.ring.write(s.buf[:n])
	if o.pass != nil && o.failed == nil {
		_, o.failed = o.pass.Write(s.buf[:n])
	}
	if n == len(s.buf) && n < readMax {
		s.buf = make([]byte, readMax)
	}
}

// finish reads the rest of the outputs and closes all files. It reports whether a process outside
// the group kept an output open for too long.
func (s *streams) finish() (detached bool) {
	closeFD(&s.in)
	detached = !s.pump(noFile, time.Now().Add(drainWait))
	s.close()
	return detached
}

// release closes our copies of the child's ends, so that its outputs can end. It is called after
// the child has ended: an earlier end of an output would only wake the poll.
func (s *streams) release() {
	for i := range s.child {
		closeFD(&s.child[i])
	}
}

func (s *streams) close() {
	s.release()
	closeFD(&s.in)
	closeFD(&s.out.fd)
	closeFD(&s.err.fd)
}

// closeFD closes an end of a pipe once.
func closeFD(fd *int) {
	if *fd != noFile {
		_ = unix.Close(*fd) // of a pipe, nothing can be lost
		*fd = noFile
	}
}

// passError returns the error of an output that could not be passed on.
func (s *streams) passError() error {
	for i, name := range [...]string{"stdout", "stderr"} {
		if err := s.outlets()[i].failed; err != nil {
			return fmt.Errorf("%s of the command could not be passed on: %w", name, err)
		}
	}
	return nil
}
