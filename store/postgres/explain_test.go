package postgres

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/nixie-go/nixie"
)

const unreachable = "cannot be reached: check host and port"

// Only what kept a connection from being made says that the server cannot be reached.
func TestExplain(t *testing.T) {
	config, err := pgxpool.ParseConfig("postgres://u@h/d")
	if err != nil {
		t.Fatal(err)
	}
	s := &endpoint{address: "postgres://h/d", config: config, shown: config.ConnConfig}
	for _, tc := range []struct {
		err  error
		want string
		code nixie.Code
	}{
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, unreachable, nixie.CodeUnavailable},
		{&net.DNSError{Err: "no such host"}, unreachable, nixie.CodeUnavailable},
		{&net.OpError{Op: "read", Err: syscall.ECONNRESET}, "the connection was lost", nixie.CodeUnavailable},
		{fmt.Errorf("receive: %w", io.ErrUnexpectedEOF), "the connection was lost", nixie.CodeUnavailable},
		{&tls.CertificateVerificationError{Err: errors.New("x")}, "its certificate is not trusted", nixie.CodeDenied},
		{context.DeadlineExceeded, "did not answer in time", nixie.CodeUnavailable},
		{errors.New("cannot encode"), "store postgres://h/d: cannot encode", nixie.CodeUnavailable},
		{&pgconn.PgError{Code: errPassword}, "let role", nixie.CodeDenied},
		{&pgconn.PgError{Code: errNoDatabase}, "no such database", nixie.CodeNotFound},
		{&pgconn.PgError{Code: errCanceled, Message: "canceling statement"}, "store postgres://h/d: : canceling", nixie.CodeUnavailable},
		{&pgconn.PgError{Code: errReadOnly}, "is read-only", nixie.CodeUnavailable},
		{&pgconn.PgError{Code: errPrivilege}, "may not do that", nixie.CodeDenied},
		{&pgconn.PgError{Code: "53100", Message: "no space"}, "store postgres://h/d: : no space", nixie.CodeUnavailable},
	} {
		got := s.explain(tc.err)
		if !strings.Contains(got.Error(), tc.want) || nixie.CodeOf(got) != tc.code ||
			tc.want != unreachable && strings.Contains(got.Error(), "cannot be reached") {
			t.Errorf("%v: %v, want %s", tc.err, got, tc.want)
		}
	}
}

// A real server that is no PostgreSQL, or has no TLS, can be reached.
func TestExplainConnecting(t *testing.T) {
	for name, answer := range map[string]string{"no TLS": "N", "another program": "HTTP/1.1 400 Bad Request\r\n\r\n", "nothing": ""} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = c.Read(make([]byte, 1<<10)) // what it asks
				_, _ = io.WriteString(c, answer)
				_ = c.Close()
			}
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		_, err = pgconn.Connect(ctx, "postgres://u@"+l.Addr().String()+"/d?sslmode=require")
		cancel()
		_ = l.Close()
		s := &endpoint{address: "postgres://h/d"}
		got := s.explain(err)
		if err == nil || strings.Contains(got.Error(), "cannot be reached") || nixie.CodeOf(got) != nixie.CodeUnavailable {
			t.Errorf("%s: %v", name, got)
		} else {
			t.Logf("%s: %v", name, got)
		}
	}
}
