// Package brokertest is the suite that every broker driver passes. [Run] checks the
// contract of package broker clause by clause, and what a worker makes of it on
// top: nothing lost, letters before acknowledgements, crash loops that end.
//
// Two brokers in memory come with it, a [Log] like Kafka and a [Mailbox] like
// RabbitMQ, so that the contract is not that of one of them: where they differ the
// suite asks [broker.Features].
package brokertest

import (
	"strings"
	"testing"

	"github.com/nixie-go/nixie/broker"
)

// TooLarge is more bytes than the channels of a [Fixture] take in a record.
const TooLarge = 2 << 20

// Harness makes a broker to test.
type Harness func(t testing.TB) Fixture

// Fixture is one broker with two empty channels.
type Fixture interface {
	// Source is the name of the channel to receive from. Letters go to the one that
	// [broker.DefaultLetters] makes of that, and it is there. No other name that
	// begins with it is a channel.
	Source() string
	// Join adds a consumer of the source to those that share it. It has the stages
	// that are given, if its driver can have any, and their channels are there then.
	Join(t testing.TB, stages ...broker.Stage) broker.Driver
	// Crash ends a consumer without a goodbye.
	Crash(t testing.TB, d broker.Driver)
	// Produce puts records on their channels.
	Produce(t testing.TB, records ...broker.Publication)
	// Records are all that were ever put on a channel.
	Records(t testing.TB, channel string) []broker.Record
}

// letters is the channel that takes the letters of a fixture.
func letters(fixture Fixture) string {
	return strings.ReplaceAll(broker.DefaultLetters, "{source}", fixture.Source())
}
