package rabbitmq

import (
	"cmp"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/nixie-go/nixie"
)

// Address names a server, or several of one cluster, and optionally a queue there.
type Address struct {
	Hosts []string // host:port; the first that answers is used
	VHost string   // default /
	Queue string   // may be empty

	User, Password string // default guest, whom a server lets in from its own machine only
	TLS            bool   // rabbitmqs:// or amqps://
	CA, Cert, Key  string // paths of PEM files: the authority of the servers, and the client's own certificate
	Management     string // URL of the management API; default port 15672 of the hosts, with TLS 15671
	KeyHeader      string // header whose value is the key of a record; empty: records of others have none
}

const (
	usualPort = "5672"
	tlsPort   = "5671"
	usualUser = "guest"
	rootVHost = "/"
)

// ParseURL reads rabbitmq://[user[:password]@]host[:port][,host[:port]…][/queue][?vhost=…], or
// rabbitmqs:// for TLS. The URLs amqp:// and amqps:// that other programs have mean the same with
// the virtual host as their path: amqp://host/vhost?queue=…
//
//	vhost            of rabbitmq://; default /
//	queue            of amqp://
//	management       URL of the management API; default port 15672 of the hosts, with TLS 15671
//	key              header:NAME: the value of that header is the key of a record
//	ca, cert         paths of PEM files
//	cert_key         path of the key of cert
//
// Errors name the wrong part of the URL, and never show the password.
func ParseURL(text string) (Address, error) {
	a := Address{VHost: rootVHost}
	scheme, rest, ok := strings.Cut(text, "://")
	native := strings.HasPrefix(scheme, "rabbitmq")
	switch scheme {
	case "rabbitmq", "amqp":
	case "rabbitmqs", "amqps":
		a.TLS = true
	default:
		ok = false
	}
	if !ok {
		return a, nixie.Errorf(nixie.CodeInvalid, "a queue is given as rabbitmq://host:5672/queue: this is no such URL")
	}
	rest, query, _ := strings.Cut(rest, "?")
	hosts, path, _ := strings.Cut(rest, "/")
	if at := strings.LastIndexByte(hosts, '@'); at >= 0 {
		if err := a.login(hosts[:at]); err != nil {
			return a, err
		}
		hosts = hosts[at+1:]
	}
	if err := a.find(hosts); err != nil {
		return a, err
	}
	what, into := "virtual host", &a.VHost
	if native {
		what, into = "queue", &a.Queue
	}
	name, err := url.PathUnescape(path)
	if err != nil || strings.Contains(path, "/") && path != rootVHost {
		return a, nixie.Errorf(nixie.CodeInvalid, "%s of rabbitmq is %q: give one name after the host, with %%2F for a slash", what, path)
	}
	*into = cmp.Or(name, *into)
	values, err := url.ParseQuery(query)
	if err != nil {
		return a, nixie.Errorf(nixie.CodeInvalid, "parameters of rabbitmq: %w", err)
	}
	for name, list := range values {
		if err := a.set(name, list[len(list)-1], native); err != nil {
			return a, err
		}
	}
	return a, a.check()
}

func (a *Address) login(text string) (err error) {
	user, password, _ := strings.Cut(text, ":")
	if a.User, err = url.PathUnescape(user); err == nil {
		a.Password, err = url.PathUnescape(password)
	}
	if err != nil {
		return nixie.Errorf(nixie.CodeInvalid, "user or password of rabbitmq has a %% that is none: write %%25 for it")
	}
	return nil
}

// find takes the hosts of a URL.
func (a *Address) find(hosts string) error {
	port := usualPort
	if a.TLS {
		port = tlsPort
	}
	for text := range strings.SplitSeq(hosts, ",") {
		u, err := url.Parse("//" + text)
		if err != nil || u.Hostname() == "" || u.Host != text {
			return nixie.Errorf(nixie.CodeInvalid, "host of rabbitmq is %q: give it as in rabbitmq://localhost:5672/queue", text)
		}
		own := cmp.Or(u.Port(), port)
		if n, err := strconv.ParseUint(own, 10, 16); err != nil || n == 0 {
			return nixie.Errorf(nixie.CodeInvalid, "port of rabbitmq is %q: give a number from 1 to 65535", own)
		}
		a.Hosts = append(a.Hosts, net.JoinHostPort(u.Hostname(), own))
	}
	return nil
}

// set takes one parameter of a URL.
func (a *Address) set(name, value string, native bool) error {
	switch {
	case name == "vhost" && native:
		a.VHost = value
	case name == "queue" && !native:
		a.Queue = value
	case name == "key":
		header, ok := strings.CutPrefix(value, "header:")
		if !ok || header == "" {
			return nixie.Errorf(nixie.CodeInvalid, "key of rabbitmq is %q: messages have none; name a header, as in key=header:order",
				value)
		}
		a.KeyHeader = header
	case name == "management":
		a.Management = value
		return checkManagement(value)
	case name == "ca":
		a.CA = value
	case name == "cert":
		a.Cert = value
	case name == "cert_key":
		a.Key = value
	default:
		own := "vhost"
		if !native {
			own = "queue"
		}
		return nixie.Errorf(nixie.CodeInvalid, "parameter %q of rabbitmq is unknown: known are %s, management, "+
			"key, ca, cert and cert_key", name, own)
	}
	return nil
}

func (a *Address) check() error {
	if a.VHost == "" {
		return nixie.Errorf(nixie.CodeInvalid, "vhost of rabbitmq is empty: name one, or leave it out for /")
	}
	if (a.Cert == "") != (a.Key == "") {
		return nixie.Errorf(nixie.CodeInvalid, "cert and cert_key of rabbitmq belong together: give both")
	}
	return nixie.CheckName("queue", a.Queue)
}

// Login adds a user and a password if the address has none.
func (a *Address) Login(user, password string) {
	a.User, a.Password = cmp.Or(a.User, user), cmp.Or(a.Password, password)
}

// String returns the address as a URL without credentials.
func (a Address) String() string {
	text := "rabbitmq://"
	if a.TLS {
		text = "rabbitmqs://"
	}
	text += strings.Join(a.Hosts, ",")
	if a.Queue != "" {
		text += "/" + url.PathEscape(a.Queue)
	}
	if a.VHost != rootVHost {
		text += "?vhost=" + url.QueryEscape(a.VHost)
	}
	return text
}

func noQueue(at Address) error {
	at.Queue = "orders"
	return nixie.Errorf(nixie.CodeInvalid, "no queue: name it after the host, as in %s", at)
}
