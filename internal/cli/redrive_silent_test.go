//go:build linux

package cli_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestRedriveToASilentBroker interrupts redrives, from a topic and from the office, to a
// broker that takes records and does not answer. They say what they know nothing of, a
// second interrupt ends them at once, and run again they send it under the same IDs.
func TestRedriveToASilentBroker(t *testing.T) {
	t.Parallel()
	for _, from := range []string{"topic", "office"} {
		t.Run(from, func(t *testing.T) {
			t.Parallel()
			cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, "in", "in.dlq"),
				kfake.BrokerConfigs(map[string]string{"group.initial.rebalance.delay.ms": "0"}))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(cluster.Close)
			d, k := newWorkspace(t), newTopics(t, cluster.ListenAddrs()[0], "in")
			args := []string{"dlq", "redrive", "--from", k.url("in.dlq"), "--all", "--yes"}
			if from == "office" {
				d.nixie(0, "dlq", "adopt", k.url("in.dlq"))
				args = []string{"dlq", "redrive", "--all", "--reason", "fixed", "--to", k.url(""), "--yes"}
			}
			var mute atomic.Bool
			var swallowed atomic.Int64
			mute.Store(true)
			cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
				cluster.KeepControl()
				if mute.Load() {
					swallowed.Add(1)
				}
				return nil, nil, mute.Load()
			})
			cmd := d.running(0, args...)
			if !within(20*time.Second, func() bool { return swallowed.Load() > 0 }) {
				t.Fatal("nothing is sent")
			}
			d.signal(cmd, os.Interrupt)
			said := regexp.MustCompile(`nixie: no answer of the broker yet for (\d+) records; ` +
				`waiting for 10s at most, interrupt again to end now`)
			if !within(9*time.Second, func() bool { return said.MatchString(d.read("err")) }) {
				t.Fatalf("it says nothing: %s", d.read("err"))
			}
			begun := time.Now()
			d.signal(cmd, os.Interrupt)
			code, sent := ended(t, cmd), said.FindStringSubmatch(d.read("err"))[1]
			if code != 130 || time.Since(begun) > 8*time.Second ||
				!strings.Contains(d.read("err"), sent+" of those sent have no answer, and may be there: they are sent again under the "+
					"same x-redrive-id\n") {
				t.Errorf("exit %d after %s: %s%s", code, time.Since(begun), d.read("out"), d.read("err"))
			}
			mute.Store(false)
			if from == "topic" {
				if !strings.Contains(d.read("err"), fmt.Sprintf("about %d records to go; run the same command again", killedRecords)) {
					t.Error(d.read("err"))
				}
				d.nixie(0, args...)
			} else {
				next := regexp.MustCompile(`letters to go; go on with\n  (nixie dlq redrive --resume .*)`).FindStringSubmatch(d.read("err"))
				if next == nil {
					t.Fatal(d.read("err"))
				}
				if r := d.finish(d.command("sh", "-c", next[1])); r.code != 0 {
					t.Errorf("%s: exit %d, %s%s", next[1], r.code, r.out, r.err)
				}
			}
			if n := len(k.there()); n != killedRecords {
				t.Errorf("%d records are there", n)
			}
		})
	}
}
