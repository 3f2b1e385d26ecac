//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package command

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Resident is a process that stays for many messages. Its caller hands it one message at a time
// and listens to the lines that it writes. One goroutine at a time may use it; Kill, End and Gone
// are safe for concurrent use.
type Resident struct {
	p       *process
	program string
	limit   int // bytes of a line
	in      *os.File
	inFD    int
	out     *os.File
	log     residentLog
	lines   chan Line
	deaf    chan struct{} // closed when the caller has stopped listening
	heard   sync.WaitGroup
	gone    chan struct{} // closed when the process and its group are gone
	status  syscall.WaitStatus
	waitErr error

	mu      sync.Mutex
	busy    bool
	ignored bool   // deaf is closed
	stray   []byte // the first line that came while there was no message
	shut    bool   // it can take no message
	told    bool   // in is closed
	written int    // bytes since Begin
	left    int    // of them, what a process that is gone has not read
}

// Line is a line that a [Resident] wrote, without its end. Err is not nil if it is not whole:
// [io.ErrUnexpectedEOF] where the output ended within the line, [io.EOF] where it ended before one,
// and [ErrLineTooLong].
type Line struct {
	Text []byte
	Err  error
}

// ErrLineTooLong reports a line beyond the limit of its [Resident]. Its text is the beginning.
var ErrLineTooLong = errors.New("the line is longer than the limit")

// closedGrace bounds the time until a process ends that has closed its input.
const closedGrace = 200 * time.Millisecond

// keptOfLong limits the bytes that are kept of a line that is too long.
const keptOfLong = 1 << 10

// StartResident starts a process that stays; see [Run] for how and for its errors. A line that the
// process writes may have limit bytes. Stdin, Timeout, Stdout and Stderr of the spec are not used.
// The caller has to wait for [Resident.Gone].
func StartResident(spec Spec, limit int) (*Resident, error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	path, err := spec.path()
	if err != nil {
		return nil, err
	}
	r := &Resident{program: filepath.Base(path), limit: limit, lines: make(chan Line, 1), deaf: make(chan struct{}),
		gone: make(chan struct{}), busy: true}
	started := make(chan error)
	go r.run(path, &spec, started)
	if err := <-started; err != nil {
		return nil, err
	}
	return r, nil
}

// run starts the process and waits for its end, on one thread: the kernel would kill the process
// at the end of the thread that started it.
func (r *Resident) run(path string, spec *Spec, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s, err := r.open(spec.tailLimit())
	if err != nil {
		started <- startFailure(spec, err)
		return
	}
	if r.p, err = start(path, spec, s); err != nil {
		s.close()
		r.closeAll()
		started <- err
		return
	}
	s.release()
	r.heard.Add(2)
	go r.listen()
	go r.readLog()
	started <- nil

	watchInput(r.p.exited, r.inFD, r.inputClosed)
	r.status, r.waitErr = r.p.wait(s)
	r.mu.Lock()
	if !r.told {
		r.left = unread(r.inFD)
	}
	r.closeInput() // a process outside the group may hold the other end
	r.mu.Unlock()
	late := time.AfterFunc(drainWait, r.closeAll)
	r.heard.Wait()
	late.Stop()
	r.closeAll()
	close(r.gone)
}

// open makes the pipes, with our ends in r.
func (r *Resident) open(keep int) (*streams, error) {
	none := outlet{fd: noFile}
	s := &streams{child: [3]int{noFile, noFile, noFile}, in: noFile, out: none, err: none}
	ours := [3]int{noFile, noFile, noFile}
	for i := range ours {
		read, write, err := openPipe()
		if err == nil {
			if s.child[i], ours[i] = read, write; i > 0 {
				s.child[i], ours[i] = write, read
			}
			err = unix.SetNonblock(ours[i], true)
		}
		if err != nil {
			s.close()
			for i := range ours {
				closeFD(&ours[i])
			}
			return nil, err
		}
	}
	r.in, r.out, r.inFD = os.NewFile(uintptr(ours[0]), "stdin"), os.NewFile(uintptr(ours[1]), "stdout"), ours[0]
	r.log = residentLog{file: os.NewFile(uintptr(ours[2]), "stderr"), fd: ours[2], limit: keep, ring: ring{limit: keep}}
	return s, nil
}

func (r *Resident) closeAll() {
	_, _ = r.in.Close(), r.out.Close() // of pipes, nothing can be lost
	r.log.close()
}

// listen reads lines until the output ends or a line is too long.
func (r *Resident) listen() {
	defer r.heard.Done()
	in := bufio.NewReaderSize(r.out, readMax/2)
	for {
		line := readResidentLine(in, r.limit)
		r.deliver(line)
		if line.Err != nil {
			break
		}
	}
	_, _ = io.Copy(io.Discard, in) // the process may write on until it is killed
}

// deliver hands a line to who listens. One that comes while there is no message ends the process.
func (r *Resident) deliver(line Line) {
	r.mu.Lock()
	idle := !r.busy
	if idle {
		r.strayed(line)
	}
	r.mu.Unlock()
	if idle {
		return
	}
	select {
	case r.lines <- line:
	case <-r.deaf:
	}
}

// strayed ends the process because of a line that came while there was no message, or because its
// output has ended: then it may be about to end by itself. The caller holds the mutex.
func (r *Resident) strayed(line Line) {
	if r.shut = true; line.Err == io.EOF {
		time.AfterFunc(drainWait, r.p.kill)
		return
	}
	if r.stray == nil {
		r.stray = append([]byte{}, line.Text...)
	}
	r.p.kill()
}

// early looks for a line that came before its message did. The caller holds the mutex.
func (r *Resident) early() {
	select {
	case line := <-r.lines:
		r.strayed(line)
	default:
	}
}

func readResidentLine(in *bufio.Reader, limit int) Line {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > limit {
			return Line{append(line, part...)[:min(keptOfLong, limit)], ErrLineTooLong}
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return Line{Text: line[:len(line)-1]}
		case errors.Is(err, bufio.ErrBufferFull):
		case len(line) > 0:
			return Line{line, io.ErrUnexpectedEOF}
		default:
			return Line{nil, io.EOF}
		}
	}
}

// Begin makes what the process writes from now on the answer to a message, and its log. Pass gets
// all of the log as well; nil means none. It reports false if the process can take no message.
func (r *Resident) Begin(pass io.Writer) bool {
	r.log.begin(pass)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.early()
	r.busy, r.written = !r.shut && !r.ignored, 0
	return r.busy
}

// Rest ends the message of [Resident.Begin]: the process has no message until the next one.
func (r *Resident) Rest() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy = false
	r.early()
	r.log.begin(nil)
}

// Write writes to the standard input of the process. It returns when all of it is in the pipe or
// the process has closed its input.
func (r *Resident) Write(data []byte) error {
	n, err := r.in.Write(data)
	r.mu.Lock()
	r.written += n
	r.mu.Unlock()
	if err != nil {
		r.inputClosed()
	}
	return err
}

// inputClosed ends a process that has closed its input, unless it ends by itself: it can take no
// message, and perhaps has not read the last one.
func (r *Resident) inputClosed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.shut {
		r.shut = true
		time.AfterFunc(closedGrace, r.p.kill)
	}
}

// Unread reports whether the process, which is gone, has read nothing of what was written since
// Begin. Where the system does not tell, only a process that closed its input before has not.
func (r *Resident) Unread() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left >= r.written
}

// Lines returns what the process writes while it has a message.
func (r *Resident) Lines() <-chan Line { return r.lines }

// Log returns the end of what the process has written to its standard error since Begin. What it
// wrote before a line that was received is in it.
func (r *Resident) Log() Tail { return r.log.tail() }

// Stray returns the line that ended the process because it came while there was no message.
func (r *Resident) Stray() (line []byte, strayed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stray, r.stray != nil
}

// Gone is closed when the process and the rest of its group are gone.
func (r *Resident) Gone() <-chan struct{} { return r.gone }

// CloseInput tells the process that no message follows.
func (r *Resident) CloseInput() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closeInput()
}

func (r *Resident) closeInput() {
	r.shut, r.told = true, true
	_ = r.in.Close() // of a pipe, nothing can be lost
}

// End asks the process to end and kills it after the grace of its spec. The reason is that a
// deadline has passed, or that its caller ends it.
func (r *Resident) End(late bool) {
	if late {
		r.p.end(causeTimeout)
		return
	}
	r.p.end(causeContext)
}

// Kill kills the process and its group.
func (r *Resident) Kill() { r.p.kill() }

// Ignore throws away what the process still writes. The caller may not receive from Lines after it.
func (r *Resident) Ignore() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ignored {
		r.ignored = true
		close(r.deaf)
	}
}

// Result returns how the process ended, with its log since Begin as standard error. Of one that is
// not gone it has no exit. An error means that the system does not tell the exit.
func (r *Resident) Result(timeout time.Duration) (Result, error) {
	result := Result{Program: r.program, Timeout: timeout, Stderr: r.Log(), Stays: true}
	select {
	case <-r.gone:
	default:
		return result, nil
	}
	r.p.mu.Lock()
	result.TimedOut, result.Canceled = r.p.cause == causeTimeout, r.p.cause == causeContext
	r.p.mu.Unlock()
	result.Stays = false
	result.exit(r.status)
	return result, r.waitErr
}

// residentLog is the standard error of a process that stays.
type residentLog struct {
	file  *os.File
	limit int

	mu     sync.Mutex
	fd     int // noFile when it is closed
	ring   ring
	pass   io.Writer
	failed bool // pass took no more
	buf    [4 << 10]byte
}

// readLog reads the log until it ends.
func (r *Resident) readLog() {
	defer r.heard.Done()
	raw, err := r.log.file.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(func(uintptr) bool { return r.log.read() }) // it fails when the file is closed
}

// read reads what is there, and reports whether the log has ended.
func (l *residentLog) read() (ended bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.readLocked()
}

func (l *residentLog) readLocked() (ended bool) {
	for l.fd != noFile {
		n, err := unix.Read(l.fd, l.buf[:])
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return false
		case n <= 0:
			return true
		}
		l.ring.write(l.buf[:n])
		if l.pass != nil && !l.failed {
			_, err := l.pass.Write(l.buf[:n])
			l.failed = err != nil
		}
	}
	return true
}

func (l *residentLog) begin(pass io.Writer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.readLocked()
	l.ring, l.pass, l.failed = ring{limit: l.limit, data: l.ring.data[:0]}, pass, false
}

func (l *residentLog) tail() Tail {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.readLocked()
	t := l.ring.tail()
	t.Data = append([]byte(nil), t.Data...) // the ring is used again
	return t
}

func (l *residentLog) close() {
	l.mu.Lock()
	l.readLocked()
	l.fd = noFile
	l.mu.Unlock()
	_ = l.file.Close() // it was only read; a reader that waits for the mutex would keep it open
}
