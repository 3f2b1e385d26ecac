package testservers_test

import (
	"context"
	"net"
	"testing"

	"github.com/nixie-go/nixie/internal/proof/testservers"
)

// A server that was killed has what it was told, and one that stopped listens no more.
func TestRedisIsKilledAndStarted(t *testing.T) {
	r := testservers.OwnRedis(t)
	say := func(line, want string) {
		t.Helper()
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", r.Addr)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		answer := make([]byte, 100)
		if _, err := conn.Write([]byte(line + "\r\n")); err != nil {
			t.Fatal(err)
		}
		n, err := conn.Read(answer)
		if err != nil || string(answer[:n]) != want {
			t.Errorf("%s: %q, %v; want %q", line, answer[:n], err, want)
		}
	}
	say("SET a b", "+OK\r\n")
	if err := r.Kill(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	say("GET a", "$1\r\nb\r\n")
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
	if conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", r.Addr); err == nil {
		_ = conn.Close()
		t.Error("it listens after Stop")
	}
}
