package policy

import (
	"errors"
	"testing"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// B075: after an outage all messages that had failed together were tried together again, for ever.
// Here messages that fail at one moment come back evenly over the wait.
func TestB075_WhatFailsTogetherComesBackSpreadOut(t *testing.T) {
	const messages, windows = 4000, 10
	p := mustNew(t, Config{})
	var ids store.IDs
	for attempt := 1; attempt < p.Config().MaxAttempts; attempt++ {
		least, most := p.Config().Backoff.Band(attempt)
		var load [windows]int
		for range messages {
			d := &nixie.Delivery{Message: nixie.Message{ID: ids.New(noon), Queue: "q", Attempts: attempt, Deliveries: attempt,
				Generation: 1, EnqueuedAt: noon}}
			s := p.Decide(d, p.Diagnose(d, errors.New("outage"), Attempt{StartedAt: noon, FailedAt: noon}), noon)
			if s.Verb != nixie.Retry {
				t.Fatalf("attempt %d: %s", attempt, s.Verb)
			}
			load[int64(s.Delay-least)*windows/int64(most-least+1)]++
		}
		for i, n := range load {
			if mean := messages / windows; n > 2*mean {
				t.Errorf("attempt %d: %d come back in window %d of %d, %d on average", attempt, n, i, windows, mean)
			}
		}
	}
}
