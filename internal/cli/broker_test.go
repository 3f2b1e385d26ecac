package cli

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/broker/kafka"
	"github.com/nixie-go/nixie/internal/proof/testservers"
)

func TestBrokerStories(t *testing.T) { scripts(t, "kafka/*") }

// scriptCluster adapts a script to what starts a cluster.
type scriptCluster struct {
	*testscript.TestScript
}

func (s scriptCluster) Fatal(args ...any) { s.Fatalf("%v", args) }
func (s scriptCluster) Cleanup(f func())  { s.Defer(f) }

// startCluster starts a cluster with topics, as $KAFKA: cluster TOPIC…
func startCluster(ts *testscript.TestScript, _ bool, topics []string) {
	ts.Setenv("KAFKA", testservers.FakeKafka(scriptCluster{ts}, topics...))
}

func clusterOf(ts *testscript.TestScript) kafka.Address {
	return kafka.Address{Seeds: []string{ts.Getenv("KAFKA")}}
}

// produce puts the records of a file on a topic: produce TOPIC FILE. A line is key,
// value and headers, with | between them; 0x begins what is in hex, and null is none.
func produce(ts *testscript.TestScript, _ bool, args []string) {
	to, err := kafka.Connect(clusterOf(ts))
	ts.Check(err)
	defer to.Close()
	for line := range strings.Lines(ts.ReadFile(args[1])) {
		parts := strings.Split(strings.TrimSpace(line), "|")
		p := broker.Publication{Channel: args[0], Key: scriptBytes(ts, parts[0]), Value: scriptBytes(ts, parts[1])}
		for _, h := range parts[2:] {
			name, value, _ := strings.Cut(h, "=")
			p.Headers = append(p.Headers, broker.RecordHeader{Name: strings.TrimSpace(name), Value: scriptBytes(ts, value)})
		}
		ts.Check(to.Publish(context.Background(), []broker.Publication{p})()[0])
	}
}

func scriptBytes(ts *testscript.TestScript, text string) []byte {
	text = strings.TrimSpace(text)
	if text == "null" {
		return nil
	}
	if digits, ok := strings.CutPrefix(text, "0x"); ok {
		data, err := hex.DecodeString(digits)
		ts.Check(err)
		return data
	}
	return []byte(strings.ReplaceAll(text, `\n`, "\n"))
}

// records prints what lies on a topic, in the order of the values: records TOPIC.
// Times and IDs are left out.
func records(ts *testscript.TestScript, _ bool, args []string) {
	at := clusterOf(ts)
	at.Topic = args[0]
	from, err := kafka.Read(context.Background(), at, "")
	ts.Check(err)
	defer from.Close()
	var lines []string
	for {
		some, err := from.Next(context.Background(), 100)
		ts.Check(err)
		if len(some) == 0 {
			break
		}
		for _, r := range some {
			line := shownBytes(r.Key) + " | " + shownBytes(r.Value)
			for _, h := range r.Headers {
				value := shownBytes(h.Value)
				switch h.Name {
				case broker.HeaderRedrivenAt, broker.HeaderTimestamp, broker.HeaderRedriveID, broker.HeaderOperation,
					broker.HeaderFirstFailureAt:
					value = "…"
				}
				line += " | " + h.Name + "=" + value
			}
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	for _, line := range lines {
		fmt.Fprintln(ts.Stdout(), line)
	}
}

func shownBytes(b []byte) string {
	switch {
	case b == nil:
		return "null"
	case slices.ContainsFunc(b, func(c byte) bool { return c < ' ' || c > '~' }):
		return "0x" + hex.EncodeToString(b)
	}
	return string(b)
}
