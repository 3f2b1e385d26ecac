//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package command

import (
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// streams are the ends of the three pipes of a child.
type streams struct {
	child   [3]uintptr // ends that the child gets
	out     outlet
	err     outlet
	in      *os.File // nil when all of stdin is in the pipe already
	unsent  []byte
	feeding sync.WaitGroup
	reading atomic.Int32
	drained chan struct{} // closed when both outputs have ended
}

// outlet reads one output to its end and keeps the tail.
type outlet struct {
	file   *os.File
	ring   ring
	pass   io.Writer
	failed error // of pass
}

const noFile = ^uintptr(0)

func openStreams(spec *Spec) (*streams, error) {
	s := &streams{child: [3]uintptr{noFile, noFile, noFile}, drained: make(chan struct{})}
	limit := spec.tailLimit()
	s.out.ring.limit, s.err.ring.limit = limit, limit
	if err := s.open(spec.Stdin); err != nil {
		s.closeChild()
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *streams) open(stdin []byte) error {
	if err := s.openIn(stdin); err != nil {
		return err
	}
	for i, outlet := range []*outlet{&s.out, &s.err} {
		r, w, err := openPipe()
		if err != nil {
			return fmt.Errorf("pipe: %w", err)
		}
		s.child[1+i] = uintptr(w)
		if outlet.file, err = pollable(r); err != nil {
			return err
		}
	}
	return nil
}

// openIn puts what fits into the pipe before anybody reads it: most items need
// no goroutine.
func (s *streams) openIn(stdin []byte) error {
	if len(stdin) == 0 {
		fd, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open %s: %w", os.DevNull, err)
		}
		s.child[0] = uintptr(fd)
		return nil
	}
	r, w, err := openPipe()
	if err != nil {
		return fmt.Errorf("pipe: %w", err)
	}
	s.child[0] = uintptr(r)
	if err := unix.SetNonblock(w, true); err != nil {
		return fmt.Errorf("pipe: %w", closing(w, err))
	}
	n, err := unix.Write(w, stdin)
	if err != nil && err != unix.EAGAIN {
		return fmt.Errorf("pipe: %w", closing(w, err))
	}
	if n = max(n, 0); n == len(stdin) {
		return unix.Close(w)
	}
	s.in, s.unsent = os.NewFile(uintptr(w), "stdin"), stdin[n:]
	return nil
}

// pollable wraps the reading end of a pipe so that a close ends a read.
func pollable(fd int) (*os.File, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, fmt.Errorf("pipe: %w", closing(fd, err))
	}
	return os.NewFile(uintptr(fd), "pipe"), nil
}

func closing(fd int, err error) error {
	_ = unix.Close(fd) // the error in hand says more
	return err
}

// begin starts to feed and to read. Its goroutines end by finish at the latest.
func (s *streams) begin(stdin []byte, pass io.Writer) {
	s.out.pass = pass
	if s.in != nil {
		s.feeding.Go(func() {
			_, _ = s.in.Write(s.unsent) // EPIPE: the command does not read all, which is its right
			_ = s.in.Close()            // of a pipe, nothing can be lost
		})
	}
	s.reading.Store(2)
	for _, outlet := range []*outlet{&s.out, &s.err} {
		go func() {
			outlet.drain()
			if s.reading.Add(-1) == 0 {
				close(s.drained)
			}
		}()
	}
}

// finish waits for the rest of the output and closes everything. It reports
// whether somebody outside the group kept the output open for too long.
func (s *streams) finish() (detached bool) {
	if s.in != nil {
		_ = s.in.Close() // closed already when all was sent
		s.feeding.Wait()
	}
	select {
	case <-s.drained:
	default:
		timer := time.NewTimer(drainWait)
		defer timer.Stop()
		select {
		case <-s.drained:
		case <-timer.C:
			detached = true
		}
	}
	s.closeOutputs()
	<-s.drained
	return detached
}

func (s *streams) closeChild() {
	for i, fd := range s.child {
		if fd != noFile {
			_ = syscall.Close(int(fd)) // of a pipe, nothing can be lost
			s.child[i] = noFile
		}
	}
}

func (s *streams) close() {
	if s.in != nil {
		_ = s.in.Close() // of a pipe, nothing can be lost
	}
	s.closeOutputs()
}

func (s *streams) closeOutputs() {
	for _, outlet := range []*outlet{&s.out, &s.err} {
		if outlet.file != nil {
			_ = outlet.file.Close() // only ever read
		}
	}
}

func (o *outlet) drain() {
	buf := make([]byte, 1<<10)
	for {
		n, err := o.file.Read(buf)
		o.ring.write(buf[:n])
		if n > 0 && o.pass != nil && o.failed == nil {
			_, o.failed = o.pass.Write(buf[:n])
		}
		if err != nil {
			return // the end of the pipe, or finish closed it
		}
		if n == len(buf) && n < 1<<15 {
			buf = make([]byte, 1<<15)
		}
	}
}

func (o *outlet) passError() error {
	if o.failed == nil {
		return nil
	}
	return fmt.Errorf("stdout of the command could not be passed on: %w", o.failed)
}
