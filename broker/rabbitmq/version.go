package rabbitmq

import (
	"strconv"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Versions that changed what a quorum queue does.
var (
	limitIsUsual = [2]int{4, 0} // a queue without a delivery limit has one of 20
	nackIsFree   = [2]int{4, 3} // a delivery that its holder gave back by basic.nack does not count
)

// countsAll reports whether the queues of a server count each delivery that was not acknowledged. A
// version that cannot be read is taken for an old one: then a record costs at most what it would
// there.
func countsAll(version string) bool { return !atLeast(version, nackIsFree) }

// atLeast reports whether a version, such as 3.10.8, is this one or a later one. One that cannot be
// read is not.
func atLeast(version string, than [2]int) bool {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, err := strconv.Atoi(major)
	if err != nil {
		return false
	}
	b, err := strconv.Atoi(minor)
	return err == nil && (a > than[0] || a == than[0] && b >= than[1])
}

// versionOf returns the version that a server says; "" if it says none.
func versionOf(conn *amqp.Connection) string {
	version, _ := conn.Properties["version"].(string)
	return version
}
