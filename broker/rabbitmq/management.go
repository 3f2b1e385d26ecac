package rabbitmq

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
)

// AMQP 0-9-1 shows neither the arguments of a queue nor its policy. The management API, a plugin of
// the server, shows both.

// Ports where the plugin listens unless it is told otherwise.
const (
	managementPort    = "15672"
	managementTLSPort = "15671"
)

// managementDial bounds a connection to the API, as a firewall may swallow it.
const managementDial = 2 * time.Second

// mostAnswer bounds what is read of one answer of the API.
const mostAnswer = 1 << 20

// settings are those of a queue, as the management API tells them.
type settings struct {
	Type      string
	Arguments map[string]any
	Policy    map[string]any `json:"effective_policy_definition"` // nil: it is not told yet
}

// number returns a setting that an argument and a policy may have: the server takes the smaller.
func (s *settings) number(name string) (n int64, is bool) {
	for _, value := range [...]any{s.Arguments["x-"+name], s.Policy[name]} {
		text, _ := value.(json.Number)
		if v, err := text.Int64(); err == nil && (!is || v < n) {
			n, is = v, true
		}
	}
	return n, is
}

// text returns a setting of which the server takes the argument, if there is one.
func (s *settings) text(name string) (text string, is bool) {
	for _, value := range [...]any{s.Arguments["x-"+name], s.Policy[name]} {
		if text, is = value.(string); is {
			return text, true
		}
	}
	return "", false
}

const (
	usualLimit = 20 // deliveries, of a quorum queue from version 4.0 on
	unlimited  = -1 // the delivery limit that means none, from version 4.0 on
)

// deliveryLimit returns after how many deliveries a server of a version ends a message. Settings
// that are not known are taken for those of the newest server.
func (s *settings) deliveryLimit(version string, known bool) (limit int, has bool) {
	n, told := s.number("delivery-limit")
	switch {
	case s.Type != amqp.QueueTypeQuorum, told && n == unlimited:
		return 0, false
	case told:
		return int(n), true
	}
	return usualLimit, !known || atLeast(version, limitIsUsual)
}

// manager asks the management API of a server.
type manager struct {
	bases []string // the first that answers is used
	named bool     // by the URL; otherwise it is only supposed there
	at    *Address
	http  *http.Client
}

func newManager(a *Address) (*manager, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = nil // as for the connection by AMQP
	transport.DialContext = (&net.Dialer{Timeout: managementDial}).DialContext
	m := &manager{at: a, http: &http.Client{Transport: transport}}
	if a.TLS || a.CA != "" {
		var err error
		if transport.TLSClientConfig, err = broker.ReadTLS("rabbitmq", a.CA, a.Cert, a.Key); err != nil {
			return nil, err
		}
	}
	if a.Management != "" {
		m.bases, m.named = []string{strings.TrimSuffix(a.Management, "/")}, true
		return m, nil
	}
	scheme, port := "http", managementPort
	if a.TLS {
		scheme, port = "https", managementTLSPort
	}
	for _, host := range a.Hosts {
		name, _, err := net.SplitHostPort(host)
		if err == nil {
			m.bases = append(m.bases, scheme+"://"+net.JoinHostPort(name, port))
		}
	}
	return m, nil
}

// close ends the connections of the questions.
func (m *manager) close() { m.http.CloseIdleConnections() }

// queue returns the settings of a queue; nil if it is not there. The API tells the policy of a
// queue some seconds after it was made. Where there are no policies it has none.
func (m *manager) queue(ctx context.Context, name string) (*settings, error) {
	ctx, stop := context.WithTimeout(ctx, managementLimit)
	defer stop()
	again := time.NewTicker(managementPause)
	defer again.Stop()
	for {
		found := &settings{}
		there, err := m.ask(ctx, "queues", name, found)
		switch {
		case err != nil || !there:
			return nil, err
		case found.Type == "":
			return nil, m.stranger()
		case found.Policy != nil:
			return found, nil
		}
		none, err := m.noPolicies(ctx)
		if err != nil || none {
			return found, err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("%s does not tell the policy of queue %s: it may be set to collect no metrics", m.where(), name)
		}
	}
}

const (
	managementLimit = 15 * time.Second       // until the settings of a queue are known: statistics come each 5 s
	managementPause = 200 * time.Millisecond // between two looks for what the API does not tell yet
)

// noPolicies reports whether a virtual host has none.
func (m *manager) noPolicies(ctx context.Context) (bool, error) {
	for _, kind := range [...]string{"policies", "operator-policies"} {
		var list []json.RawMessage
		if there, err := m.ask(ctx, kind, "", &list); err != nil || !there || len(list) > 0 {
			return false, err
		}
	}
	return true, nil
}

// ask reads one resource of the virtual host, and reports whether it is there.
func (m *manager) ask(ctx context.Context, kind, name string, into any) (there bool, err error) {
	path := "/api/" + kind + "/" + url.PathEscape(m.at.VHost)
	if name != "" {
		path += "/" + url.PathEscape(name)
	}
	for n, base := range m.bases {
		there, err = m.askAt(ctx, base+path, into)
		if !errors.As(err, new(*net.OpError)) || n == len(m.bases)-1 {
			break
		}
	}
	return there, err
}

func (m *manager) askAt(ctx context.Context, at string, into any) (there bool, err error) {
	ask, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return false, err
	}
	ask.SetBasicAuth(cmp.Or(m.at.User, usualUser), m.at.password())
	said, err := m.http.Do(ask)
	if err != nil {
		return false, fmt.Errorf("nothing answers at %s: %w", m.where(), errors.Unwrap(err)) // its text names where already
	}
	defer func() { _ = said.Body.Close() }() // it was read
	text, err := io.ReadAll(io.LimitReader(said.Body, mostAnswer))
	exact := json.NewDecoder(bytes.NewReader(text))
	exact.UseNumber()
	switch {
	case err != nil:
		return false, err
	case said.StatusCode == http.StatusNotFound && json.Valid(text):
		return false, nil
	case said.StatusCode == http.StatusUnauthorized, said.StatusCode == http.StatusForbidden:
		return false, fmt.Errorf("the user may not ask %s: give it the tag management", m.where())
	case said.StatusCode != http.StatusOK, exact.Decode(into) != nil:
		return false, m.stranger()
	}
	return true, nil
}

func (m *manager) stranger() error {
	return fmt.Errorf("%s does not answer as the management API of RabbitMQ does", m.where())
}

// where names what is asked, in an error.
func (m *manager) where() string { return strings.Join(m.bases, " or ") }

// checkManagement refuses the URL of a management API that is none.
func checkManagement(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nixie.Errorf(nixie.CodeInvalid,
			"management of rabbitmq is no URL of its API: give it as in management=http://localhost:15672, without user and password")
	}
	return nil
}

// GivesBack reports whether messages of the queue of an address may be taken and given back, as
// they are never dropped for that: it is known to be a classic queue, or one without a delivery
// limit. Whether it is known depends on the management API.
func GivesBack(ctx context.Context, at Address) bool {
	m, err := newManager(&at)
	if err != nil {
		return false
	}
	defer m.close()
	found, err := m.queue(ctx, at.Queue)
	if err != nil || found == nil || found.Type != amqp.QueueTypeQuorum && found.Type != amqp.QueueTypeClassic {
		return false
	}
	conn, err := at.dial(ctx)
	if err != nil {
		return false
	}
	defer leave(conn)
	_, has := found.deliveryLimit(versionOf(conn), true)
	return !has
}
