package redis

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/nixie-go/nixie"
)

// mailbox is one mailbox of a server.
type mailbox struct {
	client redis.UniversalClient
	name   string
	keys   keys
	salt   uint64 // tells it from other mailboxes, see position
}

// Limits of a mailbox.
const (
	MaxRecord = 1 << 20              // bytes of key, value and headers of a record; our own headers come on top
	MaxLease  = 12 * time.Hour       // longest lease
	MaxDelay  = 365 * 24 * time.Hour // longest delay of a record
	maxKeep   = 10 * MaxDelay
)

// CheckName refuses a name that a mailbox cannot have.
func CheckName(name string) error {
	if name == "" || strings.ContainsAny(name, "{}") {
		return nixie.Errorf(nixie.CodeInvalid,
			"mailbox is %q: give it a name without braces, which mark the part of a key that chooses the node of a cluster", name)
	}
	return nixie.CheckName("mailbox", name)
}

func newMailbox(client redis.UniversalClient, name string) (*mailbox, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	return &mailbox{client: client, name: name, keys: keysOf(name)}, nil
}

// act names what is done with the mailbox, for errors.
func (m *mailbox) act(verb string) string { return verb + " mailbox " + m.name }

// Retention tells how long a mailbox keeps records. The zero value keeps them for ever.
type Retention struct {
	Keep time.Duration // from sending on; 0: for ever
	Drop bool          // the mailbox removes what is too old; otherwise its receiver gets it as expired
}

func (r *Retention) check() error {
	if r.Keep < 0 || r.Keep > maxKeep {
		return nixie.Errorf(nixie.CodeInvalid, "retention is %s: give a time from 0 (for ever) to %s", r.Keep, maxKeep)
	}
	return nil
}

// create makes the mailbox if it is not there. A nil retention changes nothing.
func (m *mailbox) create(ctx context.Context, keep *Retention) error {
	ms, drop := "-", "0"
	if keep != nil {
		if err := keep.check(); err != nil {
			return err
		}
		ms = milliseconds(keep.Keep)
		if keep.Drop {
			drop = "1"
		}
	}
	_, err := m.keys.text(ctx, m.client, "create", ms, drop)
	return explain(m.act("create"), err)
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(roundUp(d), 10) }

// roundUp returns the milliseconds of a duration. One that is not zero does not become zero.
func roundUp(d time.Duration) int64 {
	return (int64(d) + int64(time.Millisecond) - 1) / int64(time.Millisecond)
}

// Stats counts the records of a mailbox.
type Stats struct {
	Visible, Leased, Delayed int64
	Sent                     int64         // ever
	Expired                  int64         // removed by the mailbox, because they were too old
	Missing                  int64         // whose bodies were gone, as after a key was deleted by hand
	Oldest                   time.Duration // age of the first visible record; −1: none is visible
	Retention                Retention

	born string // when the mailbox was made
}

// stats counts, and remembers when the mailbox was made.
func (m *mailbox) stats(ctx context.Context) (Stats, error) {
	got, err := m.keys.list(ctx, m.client, "stats")
	if err != nil {
		return Stats{}, explain(m.act("look at"), err)
	}
	if len(got) != statsFields {
		return Stats{}, strangeAnswer(m.act("look at"))
	}
	var n [9]int64
	for i := range n {
		if n[i], err = strconv.ParseInt(got[i], 10, 64); err != nil {
			return Stats{}, nixie.Errorf(nixie.CodeInternal, "%s: field %d of its counts is %q, and no number", m.act("look at"), i, got[i])
		}
	}
	s := Stats{
		Visible: n[0], Leased: n[1], Delayed: n[2], Sent: n[3], Expired: n[4], Missing: n[5],
		Retention: Retention{Keep: ms(n[6]), Drop: n[7] == 1}, Oldest: ms(n[8]), born: got[9],
	}
	if n[8] < 0 {
		s.Oldest = -1
	}
	m.salt = saltOf(m.name, s.born)
	return s, nil
}

const statsFields = 10

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

func strangeAnswer(what string) error {
	return nixie.Errorf(nixie.CodeInternal, "%s: the script answered in an unknown form", what)
}

// repair puts records that are in no list where they belong, and tells how many there were.
func (m *mailbox) repair(ctx context.Context) (found int, err error) {
	text, err := m.keys.text(ctx, m.client, "repair", milliseconds(MaxLease))
	return number(text), explain(m.act("repair"), err)
}
