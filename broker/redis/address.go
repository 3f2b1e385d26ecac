package redis

import (
	"cmp"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
)

// Address names a server, or the servers of a cluster, and optionally a mailbox there.
type Address struct {
	Servers []string // host:port; of a cluster some of its nodes
	Mailbox string   // may be empty

	User, Password string
	DB             int    // number of the database; not with Cluster
	Cluster        bool   // the servers are nodes of a cluster
	TLS            bool   // rediss://
	CA, Cert, Key  string // paths of PEM files: the authority of the servers, and the client's own certificate
	ClientName     string // as CLIENT LIST shows it; default nixie
	Relaxed        bool   // accept a server that may forget what it has confirmed; see [Open]
}

const usualPort = "6379"

// ParseURL reads redis://[user[:password]@]host[:port][/mailbox][?…], or rediss:// for TLS.
//
//	db               number of the database, from 0
//	cluster          true: the host is a node of a cluster
//	node             host:port of one more node; may be given several times
//	relaxed          true: accept a server that may forget what it has confirmed
//	client_name      as CLIENT LIST shows it; default nixie
//	ca, cert, key    paths of PEM files
//
// Errors name the wrong part of the URL, and never show the password.
func ParseURL(text string) (Address, error) {
	var a Address
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "redis" && u.Scheme != "rediss" || u.Opaque != "" {
		return a, nixie.Errorf(nixie.CodeInvalid,
			"a mailbox is given as redis://host:6379/mailbox: this is no such URL; write %%XX for special characters of a password")
	}
	if u.Hostname() == "" {
		return a, nixie.Errorf(nixie.CodeInvalid, "host of redis is empty: give it as in redis://localhost:6379/mailbox")
	}
	a.TLS, a.User = u.Scheme == "rediss", u.User.Username()
	a.Password, _ = u.User.Password()
	a.Servers = []string{net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), usualPort))}
	a.Mailbox = strings.TrimPrefix(u.Path, "/")
	if strings.Contains(a.Mailbox, "/") {
		return a, nixie.Errorf(nixie.CodeInvalid, "mailbox of redis is %q: give one name after the host", a.Mailbox)
	}
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return a, nixie.Errorf(nixie.CodeInvalid, "parameters of redis: %w", err)
	}
	for name, list := range values {
		if err := a.set(name, list); err != nil {
			return a, err
		}
	}
	if a.Cluster && a.DB != 0 {
		return a, nixie.Errorf(nixie.CodeInvalid, "db of redis is %d: a cluster has database 0 only", a.DB)
	}
	return a, nil
}

// set takes one parameter of a URL.
func (a *Address) set(name string, list []string) (err error) {
	value := list[len(list)-1]
	switch name {
	case "db":
		a.DB, err = strconv.Atoi(value)
		if err != nil || a.DB < 0 {
			return nixie.Errorf(nixie.CodeInvalid, "db of redis is %q: give a number from 0", value)
		}
	case "cluster":
		a.Cluster, err = yes(name, value)
	case "relaxed":
		a.Relaxed, err = yes(name, value)
	case "node":
		a.Servers = append(a.Servers, list...)
	case "client_name":
		a.ClientName = value
	case "ca":
		a.CA = value
	case "cert":
		a.Cert = value
	case "key":
		a.Key = value
	default:
		return nixie.Errorf(nixie.CodeInvalid,
			"parameter %q of redis is unknown: known are db, cluster, node, relaxed, client_name, ca, cert and key", name)
	}
	return err
}

func yes(name, value string) (bool, error) {
	if value != "true" && value != "false" {
		return false, nixie.Errorf(nixie.CodeInvalid, "%s of redis is %q: give true or false", name, value)
	}
	return value == "true", nil
}

// Login adds a user and a password if the address has none.
func (a *Address) Login(user, password string) {
	a.User, a.Password = cmp.Or(a.User, user), cmp.Or(a.Password, password)
}

// String returns the address as a URL without credentials.
func (a Address) String() string {
	text := "redis://"
	if a.TLS {
		text = "rediss://"
	}
	text += a.Servers[0]
	if a.Mailbox != "" {
		text += "/" + url.PathEscape(a.Mailbox)
	}
	return text
}

// Limits of a connection.
const (
	dialLimit = 5 * time.Second
	callLimit = 10 * time.Second // of one command
)

// Client makes a client that never sends a command twice by itself.
func (a Address) Client() (redis.UniversalClient, error) {
	o := &redis.UniversalOptions{
		Addrs: a.Servers, Username: a.User, Password: a.Password, DB: a.DB, IsClusterMode: a.Cluster,
		ClientName: cmp.Or(a.ClientName, "nixie"),
		MaxRetries: -1, DialerRetries: 1, DialTimeout: dialLimit, ReadTimeout: callLimit, WriteTimeout: callLimit,
		ContextTimeoutEnabled: true, ReadBufferSize: bufferSize, WriteBufferSize: bufferSize,
	}
	if a.TLS {
		c, err := broker.ReadTLS("redis", a.CA, a.Cert, a.Key)
		if err != nil {
			return nil, err
		}
		o.TLSConfig = c
	}
	return redis.NewUniversalClient(o), nil
}

const bufferSize = 64 << 10

// Quiet keeps the client library of this process from writing what fails to standard error. All
// failures are returned as errors in any case.
func Quiet() { logging.Disable() }
