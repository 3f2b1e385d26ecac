package redis

import (
	"strings"
	"testing"

	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/internal/proof/testservers"
)

// Drivers of one server share a client, which the last one closes, and what is wrong with the
// server is told once.
func TestDriversOfOneServer(t *testing.T) {
	own := testservers.OwnRedis(t, "--appendfsync", "everysec")
	at, warnings := Address{Servers: []string{own.Addr}, Mailbox: "orders"}, 0
	first, err := Open(t.Context(), Config{Address: at, Warn: func(error) { warnings++ }})
	if err != nil {
		t.Fatal(err)
	}
	drivers := []*Driver{first}
	for _, name := range []string{at.Mailbox + "-dlq", at.Mailbox + "-answers"} {
		d, err := drivers[len(drivers)-1].Neighbour(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		drivers = append(drivers, d)
	}
	if warnings != 1 {
		t.Errorf("%d warnings about one server", warnings)
	}
	for i, d := range drivers {
		if d.client != first.client {
			t.Errorf("driver %d has a client of its own", i)
		}
		for _, err := range d.Publish(t.Context(), []broker.Publication{{Channel: drivers[2].mailbox.name, Value: []byte("a")}})() {
			if err != nil {
				t.Error(err)
			}
		}
	}
	if _, err := first.Neighbour(t.Context(), "no {name}"); err == nil {
		t.Error("a mailbox with a bad name was opened")
	}
	for i, d := range drivers[:2] { // the first one first
		if err := d.Close(t.Context()); err != nil {
			t.Error(err)
		}
		list, err := drivers[2].Receive(t.Context(), broker.Want{Max: 1, Lease: MaxLease})
		if err != nil || len(list) != 1 {
			t.Errorf("after %d were closed: %d records, %v", i+1, len(list), err)
		}
	}
	if err := drivers[2].Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := first.client.Ping(t.Context()).Err(); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("the client works after all drivers are closed: %v", err)
	}
	if _, err := first.Neighbour(t.Context(), "later"); err == nil {
		t.Error("a mailbox was opened by drivers that are closed")
	}
}
