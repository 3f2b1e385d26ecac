package redrive_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/redrive"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
)

// TestExpiredLettersStay shows which engines leave a letter past its expiry, and what they advise.
func TestExpiredLettersStay(t *testing.T) {
	now := time.Unix(1_000_000_000, 0)
	send := func(context.Context, []nixie.Letter) []error { return nil }
	for name, c := range map[string]struct {
		config redrive.Config
		ends   time.Duration
		want   string
	}{
		"to its queue":            {redrive.Config{}, 0, "--expires-in"},
		"to its queue by force":   {redrive.Config{Force: true}, 0, "--expires-in"},
		"with a new end":          {redrive.Config{ExpiresIn: time.Hour}, 0, ""},
		"before its end":          {redrive.Config{}, time.Second, ""},
		"to a broker":             {redrive.Config{Send: send}, 0, "a broker keeps no expiry"},
		"to a broker by force":    {redrive.Config{Send: send, Force: true}, 0, ""},
		"to a broker in time":     {redrive.Config{Send: send}, time.Second, ""},
		"a letter without an end": {redrive.Config{}, -1, ""},
	} {
		c.config.Store, c.config.Clock = memory.New(memory.Options{}), func() time.Time { return now }
		e, err := redrive.New(c.config)
		if err != nil {
			t.Fatal(name, err)
		}
		l := nixie.Letter{Status: nixie.StatusOpen, Redrivable: c.ends != 0 || c.config.Send != nil, Cause: nixie.CauseExpired,
			Message: nixie.Message{State: nixie.Dead, ExpiresAt: now.Add(c.ends)}}
		if c.ends < 0 {
			l.Message.ExpiresAt, l.Redrivable = time.Time{}, true
		}
		if why := e.Refusal(&store.Operation{Event: store.OnRedrive}, &l); !strings.Contains(why, c.want) || (why == "") != (c.want == "") {
			t.Errorf("%s: %q, want %q", name, why, c.want)
		}
		if why := e.Refusal(&store.Operation{Event: store.OnDiscard}, &l); why != "" {
			t.Errorf("%s: a discard is refused: %s", name, why)
		}
	}
	_, err := redrive.New(redrive.Config{Store: memory.New(memory.Options{}), Send: send, ExpiresIn: 1})
	if nixie.CodeOf(err) != nixie.CodeInvalid {
		t.Errorf("a new expiry for records of a broker: %v", err)
	}
}
