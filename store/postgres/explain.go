package postgres

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/nixie-go/nixie"
)

// Codes of PostgreSQL that get an explanation of their own.
const (
	errSerialization = "40001"
	errDeadlock      = "40P01"
	errUnique        = "23505"
	errLockTimeout   = "55P03"
	errCanceled      = "57014"
	errReadOnly      = "25006"
	errPrivilege     = "42501"
	errNoTable       = "42P01"
	errNoColumn      = "42703"
	errNoSchema      = "3F000"
	errNoDatabase    = "3D000"
	errNoSetting     = "42704"
	errRole          = "28000"
	errPassword      = "28P01"
	errTooMany       = "53300"
	errDependent     = "2BP01"
	errIdle          = "25P03"
	errExists        = "42P07"
)

// codeOf returns the code of an error that PostgreSQL gave, else empty.
func codeOf(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// isRace reports whether a transaction failed only because another one used the same rows: it is
// run again.
func isRace(err error) bool {
	switch codeOf(err) {
	case errSerialization, errDeadlock, errUnique:
		return true
	}
	return errors.Is(err, errRaced)
}

// explain makes an error of the driver one for people, with its code. It shows no secrets.
func (s *endpoint) explain(err error) error {
	if err == nil || isOurs(err) {
		return err
	}
	err = cause(err)
	code := codeOf(err)
	switch code {
	case "":
		return s.unreached(err)
	case errLockTimeout:
		return nixie.Errorf(nixie.CodeUnavailable, "store %s: others held what this call needs for more than %s: %w", s.address,
			s.opts.LockWait, err)
	case errReadOnly:
		return nixie.Errorf(nixie.CodeUnavailable, "store %s is read-only, a replica perhaps: name the server that is written to: %w",
			s.address, err)
	case errPrivilege:
		return nixie.Errorf(nixie.CodeDenied,
			"store %s: role %q may not do that: as the owner of the schema, run nixie migrate up --grant %[2]s: %w", s.address, s.user(),
			err)
	case errNoTable, errNoSchema, errNoColumn:
		return nixie.Errorf(nixie.CodeNotFound, "store %s has lost its schema %s, or a part of it: run nixie migrate validate: %w",
			s.address, s.opts.Schema, err)
	case errExists:
		return nixie.Errorf(nixie.CodeInvalid,
			"schema %s of %s has tables that no migration of ours is noted for: name another one by nixie_schema in the URL: %w",
			s.opts.Schema, s.address, err)
	case errNoDatabase:
		return nixie.Errorf(nixie.CodeNotFound, "store %s: there is no such database: create it, or name another one: %w", s.address, err)
	case errNoSetting:
		return nixie.Errorf(nixie.CodeInvalid, "store %s: its URL has a parameter that PostgreSQL does not know: %w", s.address, err)
	case errRole, errPassword:
		return nixie.Errorf(nixie.CodeDenied,
			"store %s does not let role %q in: check its name and password, and pg_hba.conf of the server: %w", s.address, s.user(), err)
	case errTooMany:
		return nixie.Errorf(nixie.CodeUnavailable,
			"store %s has no connection left: lower pool_max_conns in the URLs of its users, or raise max_connections of the server: %w",
			s.address, err)
	}
	if isRace(err) || code == errIdle || unavailable(code) {
		return nixie.Errorf(nixie.CodeUnavailable, "store %s: %w", s.address, err)
	}
	return nixie.Errorf(nixie.CodeInternal, "store %s: %w", s.address, err)
}

// unreached explains an error that is not one of the server.
func (s *endpoint) unreached(err error) error {
	switch {
	case errors.Is(err, errRaced):
		return nixie.Errorf(nixie.CodeUnavailable, "store %s: others are at the same messages: do it again", s.address)
	case errors.Is(err, context.DeadlineExceeded):
		return nixie.Errorf(nixie.CodeUnavailable, "store %s did not answer in time: see that the server runs and is not overloaded: %w",
			s.address, err)
	case isDial(err):
		return nixie.Errorf(nixie.CodeUnavailable, "store %s cannot be reached: check host and port, and that the server runs: %w",
			s.address, err)
	case errors.As(err, new(*tls.CertificateVerificationError)), errors.As(err, new(x509.UnknownAuthorityError)):
		return nixie.Errorf(nixie.CodeDenied,
			"store %s: its certificate is not trusted: give that of its authority as sslrootcert=FILE in the URL: %w", s.address, err)
	case errors.As(err, new(*pgconn.ConnectError)):
		return nixie.Errorf(nixie.CodeUnavailable, "store %s answers, and no connection was made: check sslmode in the URL, and that a "+
			"PostgreSQL listens there: %w", s.address, err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), errors.As(err, new(*net.OpError)):
		return nixie.Errorf(nixie.CodeUnavailable, "store %s: the connection was lost: see that the server runs: %w", s.address, err)
	}
	return nixie.Errorf(nixie.CodeUnavailable, "store %s: %w", s.address, err)
}

// isDial reports whether no server could be connected to.
func isDial(err error) bool {
	var op *net.OpError
	return errors.As(err, new(*net.DNSError)) || errors.As(err, &op) && op.Op == "dial"
}

// cause returns what kept a connection from being made, without the attempts at each address that
// the driver lists.
func cause(err error) error {
	var pg *pgconn.PgError
	var resolving *net.DNSError
	var dialing *net.OpError
	switch {
	case !errors.As(err, new(*pgconn.ConnectError)):
	case errors.As(err, &pg):
		return pg
	case errors.As(err, &resolving):
		return resolving
	case errors.As(err, &dialing):
		return dialing
	}
	return err
}

// unavailable reports whether a code is of a class that goes away by itself or by an administrator:
// connection, credentials, database, resources, intervention, system.
func unavailable(code string) bool {
	for _, class := range [...]string{"08", "28", "3D", "53", "57", "58"} {
		if strings.HasPrefix(code, class) {
			return true
		}
	}
	return false
}
