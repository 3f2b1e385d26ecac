package rabbitmq

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/nixie-go/nixie"
)

// answers lists what servers say when they end a channel or a connection, and what to do about
// each. The first whose code and part of the text fit decides.
var answers = []struct {
	code  int
	says  string
	as    nixie.Code
	hints string
}{
	{amqp.NotFound, "no queue", nixie.CodeNotFound, "create the queue, or correct its name and vhost"},
	{amqp.NotFound, "", nixie.CodeNotFound, "correct the name"},
	{amqp.ResourceLocked, "", nixie.CodeDenied, "the queue is exclusive to another connection: consume it there"},
	{amqp.AccessRefused, "exclusive use", nixie.CodeDenied, "another consumer has the queue alone: end that one"},
	{amqp.AccessRefused, "", nixie.CodeDenied, "grant the user this right in the vhost"},
	{amqp.NotImplemented, "", nixie.CodeInvalid,
		"the queue is a stream, which hands no message to one consumer: name a quorum or classic queue"},
	{amqp.PreconditionFailed, "timeout", nixie.CodeLeaseLost,
		"a message was in hand for longer than consumer_timeout of the server: raise it"},
	{amqp.PreconditionFailed, "larger than", nixie.CodeLimit, "the server takes no message of this size: raise max_message_size"},
	{amqp.PreconditionFailed, "", nixie.CodeInvalid, "the queue is declared in another way: delete it, or name another one"},
	{amqp.ConnectionForced, "", nixie.CodeUnavailable, "the server or its operator closed the connection: try again"},
	{amqp.NotAllowed, "vhost", nixie.CodeDenied, "name a vhost that is there, and that the user may enter"},
	{amqp.SyntaxError, "", nixie.CodeInvalid,
		"a header is nested more deeply than 32 levels, or broken: take that message out with a tool of the server"},
	{amqp.FrameError, "", nixie.CodeInvalid, "the headers of a message do not fit into one frame: raise frame_max of the server"},
	{amqp.ResourceError, "", nixie.CodeUnavailable, "the server has no more of what it needs: look at its alarms"},
}

// explain wraps an error with our code and a hint what to do. What names the act that failed, which
// the server has not done: an act that it may have done is explained by who knows that.
func explain(what string, err error) error {
	var said *amqp.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, amqp.ErrClosed):
		return nixie.Errorf(nixie.CodeUnavailable, "%s: the connection is closed: %w", what, err)
	case errors.As(err, &said) && said.Server:
		for _, a := range answers {
			if a.code == said.Code && strings.Contains(said.Reason, a.says) {
				return nixie.Errorf(a.as, "%s: %s: %w", what, a.hints, err)
			}
		}
	case errors.As(err, &said) && said.Code == amqp.SyntaxError:
		return nixie.Errorf(nixie.CodeInvalid, "%s: the server sent a message whose headers cannot be read, such as one nested "+
			"more deeply than 32 levels: take it out with a tool of the server: %w", what, err)
	}
	return nixie.Errorf(nixie.CodeUnavailable, "%s: %w", what, err)
}

// explainDial explains why no connection was made.
func (a *Address) explainDial(host string, err error) error {
	what := "connect to " + host
	var op *net.OpError
	code, hint := nixie.CodeUnavailable, ""
	switch {
	case errors.As(err, new(*tls.CertificateVerificationError)), errors.As(err, new(x509.UnknownAuthorityError)):
		code, hint = nixie.CodeDenied,
			"the server's certificate is not trusted: give the certificate of its authority as ca=FILE in the URL"
	case errors.As(err, new(tls.RecordHeaderError)):
		hint = "the server does not speak TLS at this port: write rabbitmq://, or name the right port"
	case errors.As(err, &op) && op.Op == "dial":
		hint = "the server cannot be reached: check host and port, and that it runs"
	case isCode(err, amqp.AccessRefused), isCode(err, amqp.NotAllowed):
		code, hint = nixie.CodeDenied, "the server does not let this user in: check user, password and vhost"
	case errors.Is(err, io.EOF), isCode(err, amqp.FrameError), isCode(err, amqp.SyntaxError):
		hint = "the server closed the connection: if it speaks TLS at this port, write rabbitmqs://"
	default:
		return nixie.Errorf(code, "%s: %w", what, err)
	}
	return nixie.Errorf(code, "%s: %s: %w", what, hint, err)
}

func closedError() error {
	return nixie.Errorf(nixie.CodeUnavailable, "rabbitmq driver is %w", nixie.ErrClosed)
}
