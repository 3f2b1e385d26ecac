//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package command

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// Supported says why commands cannot be run on this system: here they can.
func Supported() error { return nil }

// Run starts the command, waits until it and its process group are gone, and returns its result. At
// the timeout and when ctx ends the group gets SIGTERM, and SIGKILL after the grace. When the
// leader has ended, Run kills the rest of the group.
//
// An error means that the command was not started or that an output could not be passed on. The
// result has the exit of the command. Errors about the item carry class and reason; a *[StartError]
// would hit every item. Run is safe for concurrent use and leaves no goroutine behind.
func Run(ctx context.Context, spec Spec) (Result, error) {
	if err := spec.check(); err != nil {
		return Result{}, err
	}
	if ctx.Err() != nil {
		return Result{}, notStarted(ctx)
	}
	path, err := spec.path()
	if err != nil {
		return Result{}, err
	}
	streams, err := openStreams(&spec)
	if err != nil {
		return Result{}, startFailure(&spec, err)
	}

	// The kernel sends the parent-death signal when the forking thread ends, not the process. So
	// keep the thread until the child is reaped: another goroutine could end it.
	runtime.LockOSThread()
	p, err := start(path, &spec, streams)
	if err != nil {
		runtime.UnlockOSThread()
		streams.close()
		return Result{}, err
	}
	release := p.watch(ctx, spec.Timeout)
	status, waitErr := p.wait(streams)
	release()
	runtime.UnlockOSThread()

	result := Result{
		Program: filepath.Base(path), TimedOut: p.cause == causeTimeout, Canceled: p.cause == causeContext, Timeout: spec.Timeout,
	}
	if p.cause == causeContext && errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		result.TimedOut, result.Canceled = true, false
	}
	result.Detached = streams.finish()
	result.Stdout, result.Stderr = streams.out.ring.tail(), streams.err.ring.tail()
	result.exit(status)
	return result, errors.Join(waitErr, streams.passError())
}

// exit notes how a process ended.
func (r *Result) exit(status syscall.WaitStatus) {
	r.ExitCode = status.ExitStatus()
	if status.Signaled() {
		r.Signal = status.Signal()
		r.ExitCode = 128 + int(r.Signal)
	}
}

func start(path string, spec *Spec, streams *streams) (*process, error) {
	env := spec.Env
	if spec.Guard != nil {
		env = spec.Guard.environ(env)
	}
	began := ticks()
	handle := noFile
	pid, err := syscall.ForkExec(path, spec.Args, &syscall.ProcAttr{
		Dir: spec.Dir, Env: env, Files: streams.files(), Sys: groupAttributes(&handle, spec.Survives),
	})
	if err != nil {
		return nil, startFailure(spec, err)
	}
	closeFD(&streams.child[0])
	p := &process{pid: pid, exited: handle, grace: spec.grace()}
	if p.exited == noFile {
		p.exited, err = exitPipe(pid)
	}
	if err == nil && spec.Guard != nil {
		p.forget, err = spec.Guard.record(pid, began)
	}
	if err != nil {
		p.kill()
		_, waitErr := reap(pid)
		closeFD(&p.exited)
		return nil, shortage(errors.Join(err, waitErr))
	}
	return p, nil
}

// watch ends the process at the timeout and when ctx ends, until released.
func (p *process) watch(ctx context.Context, timeout time.Duration) (release func()) {
	stop := func() bool { return true }
	if ctx.Done() != nil {
		stop = context.AfterFunc(ctx, func() { p.end(causeContext) })
	}
	if timeout <= 0 {
		return func() { stop() }
	}
	timer := time.AfterFunc(timeout, func() { p.end(causeTimeout) })
	return func() { stop(); timer.Stop() }
}
