package redis

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/nixie-go/nixie"
)

// answers lists errors of servers, and what to do about each. The first prefix that fits decides.
var answers = []struct {
	begins string
	code   nixie.Code
	hint   string
}{
	{"NOMAILBOX", nixie.CodeNotFound, "create it with nixie consume --create, or correct its name"},
	{"FORMAT", nixie.CodeInvalid, "a newer Nixie made this mailbox: use that version"},
	{"WRONGTYPE", nixie.CodeInvalid, "another program uses a key of this mailbox: choose another name, or delete that key"},
	{"NOAUTH", nixie.CodeDenied, "the server wants a password: put user and password before the host"},
	{"WRONGPASS", nixie.CodeDenied, "the server does not let this user in: check user and password"},
	{"ERR AUTH", nixie.CodeDenied, "the server has no password: leave it out of the URL"},
	{"NOPERM", nixie.CodeDenied,
		"the user may not do this: allow it the keys nixie:*, and the commands that docs/redis.md lists"},
	{"READONLY", nixie.CodeUnavailable, "the server is a replica: give the address of the primary"},
	{"OOM", nixie.CodeLimit, "the server has used its maxmemory: raise that, or consume what waits; nothing was added"},
	{"LOADING", nixie.CodeUnavailable, "the server still reads its file: try again"},
	{"MASTERDOWN", nixie.CodeUnavailable, "the replica has lost its primary: see that one runs"},
	{"CLUSTERDOWN", nixie.CodeUnavailable, "the cluster is not whole: see that all its slots have a node"},
	{"MISCONF", nixie.CodeUnavailable, "the server cannot write its file: see that its disk has space"},
	{"NOREPLICAS", nixie.CodeUnavailable, "too few replicas are connected: see that they run"},
	{"MOVED", nixie.CodeInvalid, "the server is a node of a cluster: add cluster=true to the URL"},
	{"ERR unknown command", nixie.CodeInvalid, "the server is too old: use Redis 6.2 or Valkey"},
	{"ERR This instance has cluster support disabled", nixie.CodeInvalid,
		"the server is no node of a cluster: leave cluster=true out of the URL"},
	{"ERR DB index", nixie.CodeInvalid, "the server has no such database: correct db in the URL"},
}

// explain wraps an error with our code and a hint what to check. What names the act that failed.
// If the server may have done it, the code is [nixie.CodeOutcomeUnknown].
func explain(what string, err error) error {
	var said redis.Error
	var op *net.OpError
	code, hint := nixie.CodeOutcomeUnknown, "the server may have done it: "
	switch {
	case err == nil:
		return nil
	case errors.As(err, &said):
		for _, a := range answers {
			if strings.HasPrefix(said.Error(), a.begins) {
				return nixie.Errorf(a.code, "%s: %s: %w", what, a.hint, err)
			}
		}
		return nixie.Errorf(nixie.CodeUnavailable, "%s: %w", what, err)
	case errors.Is(err, redis.ErrClosed):
		return closedError()
	case errors.As(err, new(*tls.CertificateVerificationError)), errors.As(err, new(x509.UnknownAuthorityError)):
		code, hint = nixie.CodeDenied,
			"the server's certificate is not trusted: give the certificate of its authority as ca=FILE in the URL: "
	case errors.As(err, new(tls.RecordHeaderError)):
		code, hint = nixie.CodeUnavailable, "the server does not speak TLS at this port: write redis://, or name the right port: "
	case errors.As(err, &op) && op.Op == "dial":
		code, hint = nixie.CodeUnavailable, "the server cannot be reached: check host and port, and that it runs: "
	case errors.Is(err, redis.ErrPoolTimeout):
		code, hint = nixie.CodeUnavailable, "all connections are in use: "
	case errors.Is(err, context.DeadlineExceeded):
		hint = "the server did not answer in time, and may have done it: "
	}
	return nixie.Errorf(code, "%s: %s%w", what, hint, err)
}

// explainStart explains an error of the first call to a server, which changes nothing.
func explainStart(what string, err error, at *Address) error {
	explained := explain(what, err)
	if nixie.CodeOf(explained) != nixie.CodeOutcomeUnknown {
		return explained
	}
	hint := "the server closed the connection: if it speaks TLS at this port, write rediss://"
	if at.TLS {
		hint = "the server did not answer: if it does not speak TLS at this port, write redis://"
	}
	return nixie.Errorf(nixie.CodeUnavailable, "%s: %s: %w", what, hint, err)
}

func closedError() error {
	return nixie.Errorf(nixie.CodeUnavailable, "redis driver is %w", nixie.ErrClosed)
}
