package rabbitmq

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/url"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
)

// Limits of a connection.
const (
	dialLimit = 5 * time.Second  // for each host
	callLimit = 10 * time.Second // of one call, where a server answers
	heartbeat = 10 * time.Second
)

// dial connects to the first host that answers.
func (a *Address) dial(ctx context.Context) (*amqp.Connection, error) {
	config := amqp.Config{
		SASL:  []amqp.Authentication{&amqp.PlainAuth{Username: cmp.Or(a.User, usualUser), Password: a.password()}},
		Vhost: a.VHost, Heartbeat: heartbeat, Locale: "en_US",
		Properties: amqp.Table{"product": "nixie", "connection_name": "nixie",
			"capabilities": amqp.Table{"connection.blocked": true, "consumer_cancel_notify": true}},
	}
	scheme := "amqp"
	if a.TLS {
		scheme = "amqps"
		var err error
		if config.TLSClientConfig, err = broker.ReadTLS("rabbitmq", a.CA, a.Cert, a.Key); err != nil {
			return nil, err
		}
	}
	config.Dial = func(network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{Timeout: dialLimit}).DialContext(ctx, network, address)
		if err == nil {
			err = conn.SetDeadline(time.Now().Add(dialLimit)) // for the greeting; the library lifts it
		}
		return conn, err
	}
	var failed error
	for _, host := range a.Hosts {
		name, _, err := net.SplitHostPort(host)
		if err == nil && config.TLSClientConfig != nil {
			config.TLSClientConfig.ServerName = name
		}
		conn, err := amqp.DialConfig((&url.URL{Scheme: scheme, Host: host}).String(), config)
		if err == nil {
			return conn, nil
		}
		failed = a.explainDial(host, err)
		if nixie.CodeOf(failed) == nixie.CodeDenied || ctx.Err() != nil {
			break
		}
	}
	return nil, failed
}

// password returns that of the usual user if the address names none.
func (a *Address) password() string {
	if a.User == "" && a.Password == "" {
		return usualUser
	}
	return a.Password
}

// channel opens a channel, which is closed with its connection.
func channel(conn *amqp.Connection) (*amqp.Channel, error) {
	ch, err := conn.Channel()
	return ch, explain("open a channel", err)
}

// leave closes a connection, and what is open in it. A server that does not answer is left alone.
func leave(conn *amqp.Connection) {
	_ = conn.CloseDeadline(time.Now().Add(callLimit)) // it holds nothing that counts any more
}

// serverOf returns the name of a server's cluster: "" if it has none that an office can keep.
func serverOf(conn *amqp.Connection) string {
	name, _ := conn.Properties["cluster_name"].(string)
	if nixie.CheckName("cluster", name) != nil {
		return ""
	}
	return name
}

// isCode reports whether an error is one of AMQP with this code.
func isCode(err error, code int) bool {
	var said *amqp.Error
	return errors.As(err, &said) && said.Code == code
}
