package rabbitmq

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/nixie-go/nixie/broker"
)

// ends tell how an earlier delivery ended, and whether the server counts it: before 4.3 each, and
// from then on what its holder did not give back by basic.nack.
var ends = []struct {
	how         string
	old, recent int64
}{
	{"none was", 0, 0},
	{"given back by basic.nack", 1, 0},
	{"given back by basic.reject", 1, 1},
	{"the channel closed", 1, 1},
	{"the connection broke", 1, 1},
	{"the process died", 1, 1},
	{"consumer_timeout passed", 1, 1},
	{"acknowledged, and never again", 0, 0},
}

// TestVersions writes the published rules down: the version of the server and how the earlier
// delivery ended say what a record tells. Where all deliveries count, a source takes each for a
// crash.
func TestVersions(t *testing.T) {
	for version, all := range map[string]bool{
		"": true, "mixed": true, "3.8.9": true, "3.10.8": true, "3.13.7": true, "4": true, "4.0.5": true, "4.2.1": true,
		"4.3.0": false, "4.3.0-beta.1": false, "4.10.0": false, "5.0.0": false,
	} {
		if countsAll(version) != all {
			t.Errorf("version %q counts all: %v", version, !all)
		}
		d := &Driver{features: broker.Features{CountsAll: all}}
		for _, end := range ends {
			count := end.recent
			if all {
				count = end.old
			}
			var got broker.Record
			d.record(&hand{}, &amqp.Delivery{Headers: amqp.Table{fieldCount: count}}, time.Now(), &got)
			crashes := int(count)
			if all { // the source sets them: it counts what may have been one
				crashes = 0
			}
			if got.Crashes != crashes || got.PriorDeliveries != int(count) {
				t.Errorf("version %q, %s: %d crashes, %d deliveries before", version, end.how, got.Crashes, got.PriorDeliveries)
			}
		}
	}
}
