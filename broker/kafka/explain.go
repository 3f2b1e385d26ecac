package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/nixie-go/nixie"
)

// explain wraps an error with our code and a hint what to check. What names the request that
// failed.
func explain(what string, err error) error {
	code, hint := nixie.CodeUnavailable, ""
	switch {
	case isDial(err):
		hint = "the broker cannot be reached: check host and port, and that it runs: "
	case errors.Is(err, context.DeadlineExceeded):
		hint = "the broker did not answer in time: see that it runs and is not overloaded: "
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		code, hint = nixie.CodeDenied, "the broker does not let this user in: check user, password and sasl of the URL: "
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		code, hint = nixie.CodeDenied, "this user may not read the topic: grant that right: "
	case errors.Is(err, kerr.UnsupportedSaslMechanism):
		code, hint = nixie.CodeDenied, "the broker knows no such sasl: name one that it has in the URL: "
	case errors.As(err, new(*tls.CertificateVerificationError)), errors.As(err, new(x509.UnknownAuthorityError)):
		code, hint = nixie.CodeDenied,
			"the broker's certificate is not trusted: give the certificate of its authority as ca=FILE in the URL: "
	case errors.As(err, new(tls.RecordHeaderError)):
		hint = "the broker does not speak TLS at this port: leave tls=true out of the URL, or name the right port: "
	}
	return nixie.Errorf(code, "%s: %s%w", what, hint, err)
}

// isDial reports whether no connection could be made.
func isDial(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
