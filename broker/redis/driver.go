// Package redis is the driver for mailboxes in Redis, or Valkey. A mailbox hands each record to one
// receiver for the time of a lease. What is not acknowledged by then comes again, and counts as a
// crash.
//
// All that a mailbox does is in one script, which runs in the server; the clock is the server's.
// [Script] has it, and docs/redis.md explains the form of keys and records to other programs.
package redis

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/lease"
)

// Config holds the settings of a driver.
type Config struct {
	Address              // Mailbox is required
	Retention *Retention // nil leaves that of the mailbox as it is
	MustExist bool       // refuse a mailbox that is not there, and do not make it

	// Warn gets what is wrong with the server and stops no operation. Nil drops it.
	Warn func(error)
}

// Driver receives from one mailbox, and publishes to all of the server. [Open] makes one.
type Driver struct {
	*Publisher
	config  Config
	mailbox *mailbox
	holder  string // begins all its tokens
	waker   *waker

	calls   atomic.Int64 // of claim; each has a token of its own
	longest atomic.Int64 // ms until the last lease of others ends; the most since all is theirs
	told    atomic.Bool  // to stop
	closing chan struct{}
	closed  sync.Once

	// Only Receive uses these.
	lostToken   string    // of a claim without an answer: what it leased is given back
	mailboxGone bool      // there was no mailbox at the last claim
	repaired    time.Time // when the mailbox was last looked through
}

var (
	_ broker.Driver  = (*Driver)(nil)
	_ broker.Counter = (*Driver)(nil)
	_ lease.Stopper  = (*Driver)(nil)
)

// Open connects to the server, makes the mailbox if it is not there, and puts into order what was
// deleted by hand. With MustExist a missing mailbox is [nixie.CodeNotFound].
//
// Open refuses a server that may forget what it has confirmed (see Relaxed of [Address]): one that
// evicts keys, has no append-only file, or leaves it to the system when that is written.
func Open(ctx context.Context, c Config) (*Driver, error) {
	p, err := Connect(c.Address)
	if err != nil {
		return nil, err
	}
	if c.Warn == nil {
		c.Warn = func(error) {}
	}
	d, err := open(ctx, c, p, func() error { return durable(ctx, p.client, c) })
	if err != nil {
		p.Close()
	}
	return d, err
}

// Neighbour opens another mailbox of the same server, with the settings of d and over its
// connections. What is wrong with the server was told when d was opened. Both have to be closed, in
// any order.
func (d *Driver) Neighbour(ctx context.Context, mailbox string) (*Driver, error) {
	if d.users.Add(1) == 1 {
		d.users.Add(-1)
		return nil, closedError()
	}
	c := d.config
	c.Mailbox = mailbox
	other, err := open(ctx, c, d.Publisher, func() error { return nil })
	if err != nil {
		d.Publisher.Close()
	}
	return other, err
}

// open opens a mailbox, after its name and then the server are checked.
func open(ctx context.Context, c Config, p *Publisher, check func() error) (*Driver, error) {
	m, err := newMailbox(p.client, c.Mailbox)
	if err != nil {
		return nil, err
	}
	if err := check(); err != nil {
		return nil, err
	}
	create := func() error { return m.create(ctx, c.Retention) }
	look := func() error { _, err := m.stats(ctx); return err }
	steps := []func() error{create, look}
	if c.MustExist {
		steps = []func() error{look, create}
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	d := &Driver{Publisher: p, config: c, mailbox: m, holder: newHolder(), closing: make(chan struct{})}
	d.waker = &waker{client: p.client, key: m.keys.wake()}
	found, err := m.repair(ctx)
	if found > 0 {
		c.Warn(d.repairedError(found))
	}
	return d, err
}

// newHolder makes a name for a driver that no other has.
func newHolder() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:]) + ":"
}

// Features returns what mailboxes can do.
func (d *Driver) Features() broker.Features {
	return broker.Features{System: "redis", MaxLease: MaxLease, Nack: true, MaxDelay: MaxDelay, MaxPublishDelay: MaxDelay}
}

// Lost returns nil: the server does not tell that a lease has ended.
func (d *Driver) Lost() <-chan struct{} { return nil }

// receipt is the token of a record's lease.
type receipt string

// Receive leases records. It may return an error with them, about the state of the mailbox.
func (d *Driver) Receive(ctx context.Context, want broker.Want) ([]broker.Record, error) {
	end := time.Now().Add(want.Wait)
	for {
		got, next, err := d.claim(ctx, want)
		left := time.Until(end)
		if len(got) > 0 || err != nil || left <= 0 || ctx.Err() != nil {
			return got, err
		}
		d.waker.wait(ctx, min(left, next))
		if ctx.Err() != nil {
			return nil, nil
		}
	}
}

// A receiver looks once in this time although it was not woken.
const poll = 200 * time.Millisecond

// claim leases what is visible now. It returns when to look again.
func (d *Driver) claim(ctx context.Context, want broker.Want) (got []broker.Record, next time.Duration, err error) {
	if d.isClosed() {
		return nil, 0, closedError()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callLimit) // an answer that is not read would lease records in vain
	defer cancel()
	if err := d.resume(ctx); err != nil {
		return nil, 0, err
	}
	token := d.holder + strconv.FormatInt(d.calls.Add(1), 10) + ":"
	out, err := d.mailbox.keys.list(ctx, d.client, "claim", min(want.Max, mostRecords), milliseconds(want.Lease), token)
	if err != nil {
		err = explain(d.mailbox.act("receive from"), err)
		switch nixie.CodeOf(err) {
		case nixie.CodeOutcomeUnknown:
			d.lostToken = token
		case nixie.CodeNotFound:
			d.mailboxGone = true
		}
		return nil, 0, err
	}
	if len(out) < claimHead || len(out)%3 != claimHead%3 {
		return nil, 0, strangeAnswer(d.mailbox.act("receive from"))
	}
	next = poll
	if due, _ := strconv.ParseInt(out[0], 10, 64); due >= 0 {
		next = min(next, max(ms(due), time.Millisecond))
	}
	keep, _ := strconv.ParseInt(out[3], 10, 64)
	got = make([]broker.Record, (len(out)-claimHead)/3)
	held := any(receipt(token))
	for n := range got {
		at := out[claimHead+3*n:]
		d.mailbox.record(at[0], at[1], at[2], &got[n])
		got[n].Receipt, got[n].Retention = held, ms(keep)
	}
	return got, next, d.look(ctx, out[1] == "1", number(out[2]))
}

// claimHead is the number of fields before the records in the answer of claim.
const claimHead = 4

// resume goes on after a claim that failed: it gives back what a claim without an answer may have
// leased, and learns when a mailbox that was gone was made again.
func (d *Driver) resume(ctx context.Context) error {
	if d.mailboxGone {
		if _, err := d.mailbox.stats(ctx); err != nil {
			return err
		}
		d.mailboxGone = false
	}
	if d.lostToken != "" {
		if err := d.leave(ctx, d.lostToken); err != nil {
			return err
		}
		d.lostToken = ""
	}
	return nil
}

// leave gives back what is leased under tokens that begin with a prefix.
func (d *Driver) leave(ctx context.Context, prefix string) error {
	for cursor := "0"; ; {
		var err error
		if cursor, err = d.mailbox.keys.text(ctx, d.client, "leave", prefix, cursor); err != nil {
			return explain(d.mailbox.act("give back to"), err)
		}
		if cursor == "0" {
			return nil
		}
	}
}

// Stopping implements [lease.Stopper]. The mailbox forgets it when the driver closes: it holds
// nothing any more.
func (d *Driver) Stopping(ctx context.Context, told bool) error {
	if d.told.Swap(told) == told {
		return nil
	}
	word := "0"
	if told {
		word = "1"
	}
	_, err := d.mailbox.keys.text(ctx, d.client, "stopping", d.holder, word)
	return explain(d.mailbox.act("stop at"), err)
}

// repairEvery limits how often a mailbox is looked through.
const repairEvery = time.Minute

// look tells what is wrong with the mailbox, and repairs what it can.
func (d *Driver) look(ctx context.Context, lost bool, missing int) error {
	var err error
	if missing > 0 {
		err = nixie.Errorf(nixie.CodeInternal,
			"mailbox %s lost %d records: their bodies were deleted, by hand or by another program", d.mailbox.name, missing)
	}
	if !lost || time.Since(d.repaired) < repairEvery {
		return err
	}
	d.repaired = time.Now()
	found, failed := d.mailbox.repair(ctx)
	if found > 0 {
		failed = d.repairedError(found)
	}
	return errors.Join(err, failed)
}

func (d *Driver) repairedError(found int) error {
	return nixie.Errorf(nixie.CodeInternal,
		"mailbox %s had %d records in no list, as when a key was deleted by hand: they are handed out again", d.mailbox.name, found)
}

// Remaining counts what is in the mailbox. What others do not hold comes to this driver in time, so
// it counts as ours. What they hold comes when the longest of their leases ends, unless they renew
// it.
func (d *Driver) Remaining(ctx context.Context) (broker.Remaining, error) {
	what := d.mailbox.act("count")
	got, err := d.mailbox.keys.list(ctx, d.client, "remaining", d.holder)
	if err != nil {
		return broker.Remaining{}, explain(what, err)
	}
	var n [3]int64
	for i := range n {
		if len(got) != len(n) {
			return broker.Remaining{}, strangeAnswer(what)
		}
		if n[i], err = strconv.ParseInt(got[i], 10, 64); err != nil {
			return broker.Remaining{}, strangeAnswer(what)
		}
	}
	all, others, longest := n[0], n[1], n[2]
	if all > others { // the time of standing still begins again
		d.longest.Store(longest)
	}
	d.longest.Store(max(d.longest.Load(), longest))
	return broker.Remaining{All: all, Ours: all - others, Within: ms(d.longest.Load()) + grace}, nil
}

// grace adds to a lease the time until its record is handed out again.
const grace = time.Second

func (d *Driver) isClosed() bool {
	select {
	case <-d.closing:
		return true
	default:
		return false
	}
}

// Close gives back what the driver holds.
func (d *Driver) Close(ctx context.Context) error {
	err := closedError()
	d.closed.Do(func() {
		close(d.closing)
		if err = d.leave(ctx, d.holder); err == nil {
			err = d.Stopping(ctx, false)
		}
		if nixie.CodeOf(err) == nixie.CodeNotFound {
			err = nil // the mailbox is gone, and what the driver held with it
		}
		d.Publisher.Close()
	})
	return err
}
