//go:build unix

package worktree

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/nixie-go/nixie"
)

// lockWait bounds the wait for a lock. A child that was just being started may hold a lock a moment
// longer than the process that released it.
const lockWait = time.Second

// lockJob locks a job for this process until the file is closed. The error names the process that
// holds the job already.
func lockJob(ctx context.Context, name string) (*os.File, error) {
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, worktreeError(fmt.Errorf("lock of the job: %w", err))
	}
	if !lockedWithin(ctx, file) {
		has, _ := os.ReadFile(name) // for people
		_ = file.Close()            // nothing was written to it
		return nil, nixie.Errorf(nixie.CodeConflict, "the job is at work in process %s: wait for its end, or stop it",
			strings.TrimSpace(string(has)))
	}
	host, _ := os.Hostname() // for people
	if err := file.Truncate(0); err == nil {
		_, err = fmt.Fprintf(file, "%d on %s\n", os.Getpid(), host)
		if err != nil {
			_ = file.Close() // the first error is the one to report
			return nil, worktreeError(fmt.Errorf("lock of the job: %w", err))
		}
	}
	return file, nil
}

func lockedWithin(ctx context.Context, file *os.File) bool {
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	again := time.NewTicker(lockWait / 100)
	defer again.Stop()
	for syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		select {
		case <-again.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// withLock calls do while no other process holds the lock of that file.
func withLock(name string, do func() error) error {
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return worktreeError(fmt.Errorf("lock: %w", err))
	}
	defer func() { _ = file.Close() }() // nothing was written to it
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return worktreeError(fmt.Errorf("lock %s: %w", name, err))
	}
	return do()
}
