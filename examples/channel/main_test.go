package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/broker/kafka"
	"github.com/nixie-go/nixie/internal/proof/testservers"
	"github.com/nixie-go/nixie/policy"
)

// cluster is a cluster in this process with the topics of the pattern.
type cluster struct {
	*testing.T
	seed string
}

func (c cluster) at(topic string) kafka.Address {
	return kafka.Address{Seeds: []string{c.seed}, Topic: topic}
}

func (c cluster) url(topic string) string { return "kafka://" + c.seed + "/" + topic }

// records returns the records of a topic as value, reason, redrive count.
func (c cluster) records(topic string) map[string]string {
	c.Helper()
	from, err := kafka.Read(c.Context(), c.at(topic), "")
	if err != nil {
		c.Fatal(err)
	}
	defer from.Close()
	out := map[string]string{}
	for {
		some, err := from.Next(c.Context(), 100)
		if err != nil {
			c.Fatal(err)
		}
		if len(some) == 0 {
			return out
		}
		for _, r := range some {
			d, _ := broker.ReadDeath(r.Headers)
			out[string(r.Value)] = strings.TrimSpace(fmt.Sprintf("%s %s %s %d", d.Channel, d.ReasonText, d.Reason, d.Redrives))
		}
	}
}

// until runs the processor until the topic of the letters has that many records.
func (c cluster) until(letters int, handle nixie.HandlerFunc) {
	c.Helper()
	profile, err := policy.ProfileNamed("kafka-dlc")
	if err != nil {
		c.Fatal(err)
	}
	profile.Config.Backoff = policy.Backoff{Base: time.Millisecond}
	ctx, stop := context.WithCancel(c.Context())
	ran := make(chan error, 1)
	go func() { ran <- process(ctx, c.at("orders"), profile.Config, handle) }()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.After(time.Minute)
	for len(c.records("orders.dlq")) < letters {
		select {
		case <-tick.C:
		case err := <-ran:
			c.Fatal("it ended: ", err)
		case <-late:
			c.Fatalf("no %d letters: %v", letters, c.records("orders.dlq"))
		}
	}
	stop()
	if err := <-ran; err != nil {
		c.Error(err)
	}
}

// TestChannel runs the pattern: failed records are on the channel with their reason, and a fixed
// one is redriven once.
func TestChannel(t *testing.T) {
	c := cluster{t, testservers.FakeKafka(t, "orders", "orders.dlq", "orders.quarantine")}
	to, err := kafka.Connect(c.at(""))
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	for _, value := range []string{"fine", "flaky one", "bad-schema", "down", "fine too"} {
		record := broker.Publication{Channel: "orders", Key: []byte(value), Value: []byte(value)}
		if err := to.Publish(t.Context(), []broker.Publication{record})()[0]; err != nil {
			t.Fatal(err)
		}
	}
	c.until(2, handleBusiness)
	if got := fmt.Sprint(c.records(
		"orders.dlq")); got != "map[bad-schema:orders permanent_error validation 0 down:orders transient_max_retries handler 0]" {
		t.Error(got)
	}
	var out bytes.Buffer
	for _, want := range []string{"1 redriven, 0 put aside, 0 skipped, about 1 left\n",
		"1 redriven, 0 put aside, 0 skipped, about 0 left\n", "0 redriven, 0 put aside, 0 skipped, about 0 left\n"} {
		out.Reset()
		if err := run(t.Context(), []string{"redrive", c.url("orders.dlq"), "1"}, &out); err != nil || out.String() != want {
			t.Errorf("%q, want %q, %v", out.String(), want, err)
		}
	}
	if got := c.records("orders"); got["down"] != "orders   1" || got["bad-schema"] != "orders   1" {
		t.Errorf("%q", got)
	}
}
