// Package brokertest holds the suite that every broker driver passes. [Run] checks the contract of
// package broker clause by clause. It also runs a worker on the driver and checks that no record is
// lost, that letters come before acknowledgements, and that crash loops end.
//
// The package has four brokers in memory: a [Log] like Kafka, and a [Mailbox] that is like
// RabbitMQ, like Redis ([NewTimed]) or like SQS ([NewCounting]). They keep the contract from
// fitting only one broker: where they differ, the suite asks [broker.Features].
package brokertest

import (
	"strings"
	"testing"

	"github.com/nixie-go/nixie/broker"
)

// TooLarge is more bytes than a record on a channel of a [Fixture] may have.
const TooLarge = 2 << 20

// Harness makes a broker for one test.
type Harness func(t testing.TB) Fixture

// Fixture is one broker with two empty channels.
type Fixture interface {
	// Source returns the channel to receive from. [broker.DefaultLetters] names the channel of its
	// letters, which exists too. No other channel has a name that begins like these.
	Source() string
	// Join adds a consumer of the source. If the driver can have stages, it gets these, and their
	// channels exist.
	Join(t testing.TB, stages ...broker.Stage) broker.Driver
	// Crash ends a consumer without closing it. A broker that notices a crash by time has noticed
	// it when Crash returns.
	Crash(t testing.TB, d broker.Driver)
	// Produce adds records to their channels.
	Produce(t testing.TB, records ...broker.Publication)
	// Records returns all records that were ever added to a channel.
	Records(t testing.TB, channel string) []broker.Record
}

// letters returns the channel that takes the letters of a fixture.
func letters(fixture Fixture) string {
	return strings.ReplaceAll(broker.DefaultLetters, "{source}", fixture.Source())
}
