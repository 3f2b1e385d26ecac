//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package command

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nixie-go/nixie"
)

const (
	guardArgument = "guard-process-groups"
	readyWait     = 10 * time.Second // for the supervisor to start
	endWait       = 10 * time.Second // for killed groups to be gone
	pollEvery     = 5 * time.Millisecond
	reservedSlots = 120 // written at the start, to notice a full disk then
)

// Guard is a supervisor process that ends the process groups of this process when this one dies in
// any way, kill -9 included. It has a session of its own, so a signal to the process group of this
// process does not reach it. It is safe for concurrent use.
type Guard struct {
	mark       string
	path       string
	file       *os.File
	link       *os.File // a socket; its end tells the supervisor that this process is gone
	supervisor *os.Process

	mu     sync.Mutex
	free   []int
	slots  int
	closed bool
}

// StartGuard starts a supervisor for the owner. The owner is a name of this process that no live
// process shares, in any characters. A file in dir lists its process groups. The program, also a
// test binary, must call [GuardMain] first in main. StartGuard ends groups that a dead owner of
// that name left. An error of [nixie.CodeConflict] means that the owner is alive.
func StartGuard(dir, owner string) (*Guard, error) {
	if os.Getenv(fileVariable) != "" {
		return nil, nixie.Errorf(nixie.CodeInternal, "a guard's supervisor wants a guard: main has to call command.GuardMain first")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	path := filepath.Join(dir, groupsFile(owner))
	file, err := lockGroups(path, os.O_CREATE)
	if err != nil {
		return nil, guardError(owner, err)
	}
	g := &Guard{mark: rand.Text(), path: path, file: file}
	err = endListed(file, false)
	if err == nil {
		err = g.reserve()
	}
	if err == nil {
		err = g.launch(path)
	}
	if err != nil {
		return nil, errors.Join(guardError(owner, err), os.Remove(path), file.Close())
	}
	return g, nil
}

func guardError(owner string, err error) error {
	if errors.Is(err, errLocked) {
		return nixie.Errorf(nixie.CodeConflict, "owner %q is alive: its process groups are left alone", owner)
	}
	return nixie.Errorf(nixie.CodeUnavailable, "guard of owner %q: %w", owner, err)
}

func (g *Guard) reserve() error {
	session, err := unix.Getsid(0)
	if err != nil {
		return fmt.Errorf("session: %w", err)
	}
	data := groupList{mark: g.mark, session: session, system: systemName()}.header()
	for range reservedSlots {
		data = slot{}.append(data)
		g.free = append(g.free, g.slots)
		g.slots++
	}
	if err := g.file.Truncate(0); err != nil {
		return err
	}
	_, err = g.file.WriteAt(data, 0)
	return err
}

// launch starts the supervisor and waits for its first byte.
func (g *Guard) launch(path string) error {
	ours, theirs, err := socketPair()
	if err != nil {
		return err
	}
	executable, err := ownExecutable()
	if err != nil {
		return errors.Join(err, ours.Close(), theirs.Close())
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return errors.Join(err, ours.Close(), theirs.Close())
	}
	supervisor, err := os.StartProcess(executable, []string{os.Args[0], guardArgument}, &os.ProcAttr{
		Dir:   "/",
		Env:   []string{fileVariable + "=" + path},
		Files: []*os.File{null, null, null, theirs, g.file},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	closeErr := errors.Join(null.Close(), theirs.Close())
	if err != nil {
		return errors.Join(fmt.Errorf("start supervisor: %w", err), closeErr, ours.Close())
	}
	late := time.AfterFunc(readyWait, func() { _ = supervisor.Kill() })
	defer late.Stop()
	if _, err := ours.Read(make([]byte, 1)); err != nil {
		_ = supervisor.Kill() // it may be dead already
		_, waitErr := supervisor.Wait()
		return errors.Join(errors.New("supervisor did not start: main has to call command.GuardMain first"), waitErr, ours.Close())
	}
	g.link, g.supervisor = ours, supervisor
	return nil
}

// socketPair makes the link between this process and its supervisor. Both ends
// are closed on exec, so no child keeps the link open.
func socketPair() (ours, theirs *os.File, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socket pair: %w", err)
	}
	unix.CloseOnExec(fds[0])
	unix.CloseOnExec(fds[1])
	if err := unix.SetNonblock(fds[0], true); err != nil {
		return nil, nil, errors.Join(err, unix.Close(fds[0]), unix.Close(fds[1]))
	}
	return os.NewFile(uintptr(fds[0]), "guard"), os.NewFile(uintptr(fds[1]), "supervisor"), nil
}

// Close ends the supervisor and all groups that still run. Later commands fail. It may be called
// again.
func (g *Guard) Close() error {
	g.mu.Lock()
	closed := g.closed
	g.closed = true
	g.mu.Unlock()
	if closed {
		return nil
	}
	err := g.link.Close()
	_, waitErr := g.supervisor.Wait()
	if _, statErr := os.Lstat(g.path); statErr == nil { // the supervisor was killed
		err = errors.Join(err, endListed(g.file, true), os.Remove(g.path))
	}
	return errors.Join(err, waitErr, g.file.Close())
}

// environ adds the mark that tells the supervisor our children.
func (g *Guard) environ(env []string) []string {
	return append(env[:len(env):len(env)], markVariable+"="+g.mark)
}

// record lists a group whose leader started in the tick began or later; forget takes it off the
// list. While that tick lasts it is the start time, and record need not read it.
func (g *Guard) record(group int, began uint64) (forget func(), err error) {
	start := began
	if ticks() != began {
		start = startTime(group)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, errors.New("guard is closed")
	}
	if len(g.free) == 0 {
		if g.slots == maxSlots {
			return nil, nixie.Errorf(nixie.CodeLimit, "guard lists %d process groups, the limit: run fewer commands at a time", maxSlots)
		}
		g.free = append(g.free, g.slots)
		g.slots++
	}
	at := g.free[len(g.free)-1]
	if err := g.write(at, slot{group, start}); err != nil {
		return nil, fmt.Errorf("list process group: %w", err)
	}
	g.free = g.free[:len(g.free)-1]
	return func() { g.forget(at) }, nil
}

func (g *Guard) forget(at int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return // the supervisor has removed the file
	}
	// A slot that cannot be cleared is not used again. Its start time tells that its group is gone.
	if g.write(at, slot{}) == nil {
		g.free = append(g.free, at)
	}
}

func (g *Guard) write(at int, s slot) error {
	var buf [slotSize]byte
	_, err := g.file.WriteAt(s.append(buf[:0]), headerSize+int64(at)*slotSize)
	return err
}

var errLocked = errors.New("locked")

// lockGroups opens the file of an owner with its lock, which runner and
// supervisor share. The lock counts only if the path still names the file.
func lockGroups(path string, flags int) (*os.File, error) {
	for {
		file, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|flags, 0o600)
		if err != nil {
			return nil, err
		}
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == unix.EWOULDBLOCK {
			err = errLocked
		}
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		opened, err := file.Stat()
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		if named, err := os.Stat(path); err == nil && os.SameFile(opened, named) {
			return file, nil
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, errors.Join(err, file.Close())
		}
		if err := file.Close(); err != nil {
			return nil, err
		}
	}
}
