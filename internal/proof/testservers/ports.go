package testservers

import (
	"context"
	"errors"
	"net"
	"time"
)

// freePorts returns two free addresses of this machine.
func freePorts() (one, other string, err error) {
	a, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it does not wait
	if err != nil {
		return "", "", err
	}
	b, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it does not wait
	if err != nil {
		return "", "", errors.Join(err, a.Close())
	}
	return a.Addr().String(), b.Addr().String(), errors.Join(a.Close(), b.Close())
}

// leaves waits until the port of a server that was killed is free: it dies some time after the
// signal.
func leaves(ctx context.Context, address string) error {
	try := time.NewTicker(time.Millisecond)
	defer try.Stop()
	for {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err == nil {
			return l.Close()
		}
		select {
		case <-try.C:
		case <-ctx.Done():
			return err
		}
	}
}
