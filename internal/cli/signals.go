package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// stopSignals lists the signals that ask for an orderly stop: commands that run finish, and waiting
// work is given back. SIGHUP is one of them unless nohup has it ignored.
func stopSignals() []os.Signal {
	list := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		list = append(list, syscall.SIGHUP)
	}
	return list
}

// stopSignal is the cause of a context that a signal has ended.
type stopSignal struct{ os.Signal }

func (s stopSignal) Error() string { return s.String() + " signal received" }

// byPerson reports whether a person at a keyboard ended ctx, who can interrupt again, and not a
// platform.
func byPerson(ctx context.Context) bool {
	var s stopSignal
	return errors.As(context.Cause(ctx), &s) && s.Signal == os.Interrupt
}

// untilSignal returns a context that the first of stopSignals ends, until stop is called.
func untilSignal(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	heard, finished := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(heard, stopSignals()...)
	go func() {
		defer close(finished)
		select {
		case s := <-heard:
			cancel(stopSignal{s})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(heard)
		cancel(nil)
		<-finished
	}
}

// watchInterrupts calls first when ctx ends, and second at the next interrupt. It watches until end
// is called.
func watchInterrupts(ctx context.Context, first, second func()) (end func()) {
	heard := make(chan os.Signal, 2)
	signal.Notify(heard, stopSignals()...)
	over, finished := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(finished)
		select {
		case <-over:
			return
		case <-ctx.Done():
		}
		first()
		for range 2 { // one of them has ended ctx
			select {
			case <-over:
				return
			case <-heard:
			}
		}
		second()
	}()
	return func() {
		signal.Stop(heard)
		close(over)
		<-finished
	}
}
