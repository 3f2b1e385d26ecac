package kafka

import (
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/filter"
)

// Address names a cluster, optionally one of its topics, and the credentials of the client.
type Address struct {
	Seeds []string // host:port
	Topic string   // may be empty

	User, Password string
	SASL           string // plain, scram-sha-256 or scram-sha-512; empty: none
	TLS            bool
	CA, Cert, Key  string // paths of PEM files: the authority of the brokers, and the client's own certificate
	ClientID       string
	Session        time.Duration // how long a group waits for a member that vanished; 0: the default
}

// SASL mechanisms, and defaults of the URL.
const (
	saslPlain     = "plain"
	saslSCRAM256  = "scram-sha-256"
	saslSCRAM512  = "scram-sha-512"
	usualPort     = "9092"
	usualClientID = "nixie"
)

// ParseURL reads kafka://[user[:password]@]host[:port][,host[:port]…][/topic][?…].
//
//	sasl             plain (the default with a user), scram-sha-256 or scram-sha-512
//	tls              true or false
//	ca, cert, key    paths of PEM files
//	client_id        name of the client
//	session          how long a group waits for a member that vanished, such as 30s
//
// Errors name the wrong part of the URL, and never show the password.
func ParseURL(text string) (Address, error) {
	a := Address{ClientID: usualClientID}
	rest, ok := strings.CutPrefix(text, "kafka://")
	if !ok {
		return a, nixie.Errorf(nixie.CodeInvalid, "a broker is given as kafka://host:9092/topic: this one does not begin with kafka://")
	}
	rest, query, _ := strings.Cut(rest, "?")
	hosts, topic, _ := strings.Cut(rest, "/")
	if at := strings.LastIndexByte(hosts, '@'); at >= 0 {
		if err := a.login(hosts[:at]); err != nil {
			return a, err
		}
		hosts = hosts[at+1:]
	}
	var err error
	if a.Seeds, err = seedsOf(hosts); err != nil {
		return a, err
	}
	if a.Topic, err = url.PathUnescape(topic); err != nil || strings.Contains(a.Topic, "/") {
		return a, nixie.Errorf(nixie.CodeInvalid, "topic of the broker is %q: give one topic after the host", topic)
	}
	return a, a.read(query)
}

func seedsOf(hosts string) ([]string, error) {
	var seeds []string
	for text := range strings.SplitSeq(hosts, ",") {
		if text == "" {
			return nil, nixie.Errorf(nixie.CodeInvalid, "host of the broker is empty: give it as in kafka://localhost:9092/topic")
		}
		host, port, err := net.SplitHostPort(text)
		if err != nil { // no port
			host, port = text, usualPort
			if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") {
				host = text[1 : len(text)-1]
			}
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, nixie.Errorf(nixie.CodeInvalid, "port of the broker %q is %q: give a number from 1 to 65535", text, port)
		}
		if _, err := netip.ParseAddr(host); err != nil && !hostName().MatchString(host) {
			return nil, nixie.Errorf(nixie.CodeInvalid, "host of the broker is %q: give a name or an address, one of version 6 in brackets",
				text)
		}
		seeds = append(seeds, net.JoinHostPort(host, port))
	}
	return seeds, nil
}

// hostName matches the characters of host names.
var hostName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[\pL\pN._-]+$`)
})

func (a *Address) login(text string) (err error) {
	user, password, _ := strings.Cut(text, ":")
	if a.User, err = url.PathUnescape(user); err == nil {
		a.Password, err = url.PathUnescape(password)
	}
	if err != nil {
		return nixie.Errorf(nixie.CodeInvalid, "user or password of the broker has a %% that is none: write %%25 for it")
	}
	a.SASL = saslPlain
	return nil
}

// read takes the parameters of the URL.
func (a *Address) read(query string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return nixie.Errorf(nixie.CodeInvalid, "parameters of the broker: %w", err)
	}
	for name, list := range values {
		value := list[len(list)-1]
		switch name {
		case "sasl":
			if !slices.Contains([]string{saslPlain, saslSCRAM256, saslSCRAM512}, value) {
				return nixie.Errorf(nixie.CodeInvalid, "sasl of the broker is %q: give %s, %s or %s", value, saslPlain, saslSCRAM256,
					saslSCRAM512)
			}
			a.SASL = value
		case "tls":
			if value != "true" && value != "false" {
				return nixie.Errorf(nixie.CodeInvalid, "tls of the broker is %q: give true or false", value)
			}
			a.TLS = value == "true"
		case "ca":
			a.CA, a.TLS = value, true
		case "cert":
			a.Cert, a.TLS = value, true
		case "key":
			a.Key, a.TLS = value, true
		case "client_id":
			a.ClientID = value
		case "session":
			if a.Session, err = filter.ParseDuration(value); err != nil || !validSession(a.Session) {
				return nixie.Errorf(nixie.CodeInvalid, "session of the broker is %q: give a time from %s to %s, such as 10s", value,
					minSession, maxSession)
			}
		default:
			return nixie.Errorf(nixie.CodeInvalid,
				"parameter %q of the broker is unknown: known are sasl, tls, ca, cert, key, client_id and session", name)
		}
	}
	return nil
}

// Options returns the client options for these credentials; see [Config.Client].
func (a Address) Options() ([]kgo.Opt, error) {
	opts := []kgo.Opt{kgo.ClientID(a.ClientID)}
	if a.ClientID == "" {
		opts = nil
	}
	if a.SASL != "" {
		m, err := a.mechanism()
		if err != nil {
			return nil, err
		}
		opts = append(opts, kgo.SASL(m))
	}
	if !a.TLS {
		return opts, nil
	}
	c, err := broker.ReadTLS("the broker", a.CA, a.Cert, a.Key)
	if err != nil {
		return nil, err
	}
	return append(opts, kgo.DialTLSConfig(c)), nil
}

func (a *Address) mechanism() (sasl.Mechanism, error) {
	switch {
	case a.User == "" || a.Password == "":
		return nil, nixie.Errorf(nixie.CodeInvalid,
			"%s needs a user and a password: put them before the host, or into NIXIE_KAFKA_USER and NIXIE_KAFKA_PASSWORD", a.SASL)
	case a.SASL == saslSCRAM256:
		return scram.Auth{User: a.User, Pass: a.Password}.AsSha256Mechanism(), nil
	case a.SASL == saslSCRAM512:
		return scram.Auth{User: a.User, Pass: a.Password}.AsSha512Mechanism(), nil
	}
	return plain.Auth{User: a.User, Pass: a.Password}.AsMechanism(), nil
}

// Login adds a user and a password if the address has none.
func (a *Address) Login(user, password string) {
	if a.User == "" {
		a.User = user
	}
	if a.Password == "" {
		a.Password = password
	}
	if a.SASL == "" && a.User != "" {
		a.SASL = saslPlain
	}
}

// String returns the address as a URL without credentials.
func (a Address) String() string {
	text := "kafka://" + strings.Join(a.Seeds, ",")
	if a.Topic != "" {
		text += "/" + url.PathEscape(a.Topic)
	}
	return text
}
