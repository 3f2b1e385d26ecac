package rabbitmq

import (
	"strconv"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

// nackIsFree is the first version, 4.3, in which a quorum queue does not count a delivery that its
// holder gave back by basic.nack. Before it, each delivery counts that was not acknowledged.
var nackIsFree = [2]int{4, 3}

// countsAll reports whether the queues of a server count each delivery. A version that cannot be
// read is taken for an old one: then a record costs at most what it would there.
func countsAll(version string) bool {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, err := strconv.Atoi(major)
	if err != nil {
		return true
	}
	b, err := strconv.Atoi(minor)
	return err != nil || a < nackIsFree[0] || a == nackIsFree[0] && b < nackIsFree[1]
}

// versionOf returns the version that a server says; "" if it says none.
func versionOf(conn *amqp.Connection) string {
	version, _ := conn.Properties["version"].(string)
	return version
}
