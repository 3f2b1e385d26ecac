package powerloss_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	lib "modernc.org/sqlite/lib"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/proof/faultdisk"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
	"github.com/nixie-go/nixie/store/storetest"
)

// fullDisks are the ways in which a disk refuses a write, of which it takes a part: it
// is full, or a quota is used up, which SQLite hears as an error of writing, until
// there is room or for this one.
func fullDisks() []faultdisk.Fault {
	return []faultdisk.Fault{
		{Calls: faultdisk.Write, Code: lib.SQLITE_FULL, Short: 4095, Always: true},
		{Calls: faultdisk.Write, Short: 512},
	}
}

// crowded is a store on a disk that fills up at some write, and what becomes of the
// calls that are refused.
type crowded struct {
	*sqlite.Store
	try func(what string, call func() error)
}

// refusals makes a call on a disk that is full at its first write, at its second, and so
// on until the call does not come so far. Each time it looks whether nothing has
// happened, to readers and to who opens the file after a crash.
func (p *play) refusals(fault faultdisk.Fault, what string, call func() error) (refused int) {
	p.t.Helper()
	before := p.seen(p.s)
	for n := 1; ; n++ {
		p.disk.FailAt(n, fault)
		err := call()
		if nixie.CodeOf(err) != nixie.CodeUnavailable {
			p.disk.Heal()
			return n - 1
		}
		if text := err.Error(); !strings.Contains(text, p.s.Path()) || !strings.Contains(text, "disk") || !strings.Contains(text,
			"nothing was changed") {
			p.t.Errorf("%s: told %q", what, text)
		}
		if got := p.seen(p.s); got != before {
			p.t.Errorf("%s was refused at write %d: %s", what, n, difference(before, got))
		}
		mode := faultdisk.All // killed, in every other case
		if modes := faultdisk.Modes(); n%2 == 0 {
			mode = modes[n/2%len(modes)]
		}
		p.afterCrash(what, mode, before)
		if p.t.Failed() {
			p.t.FailNow()
		}
	}
}

// afterCrash opens what would be left if the power went now.
func (p *play) afterCrash(what string, mode faultdisk.Mode, want string) {
	p.t.Helper()
	dir := p.t.TempDir()
	crash, err := p.disk.CrashAt(p.disk.Ops(), mode, 1, dir)
	must(p.t, err)
	s, err := sqlite.Open(crash.Path("store.db"), sqlite.Options{Reserve: -1, Clock: p.clock.Now})
	must(p.t, err)
	defer s.Close() //nolint:errcheck // it was only looked at
	if got := p.seen(s); got != want {
		p.t.Errorf("%s was refused, and after %v: %s", what, crash, difference(want, got))
	}
}

func (c *crowded) Adjust(ctx context.Context, queue, actor, reason string, edit func(*nixie.QueueSettings) error) (set nixie.QueueSettings,
	err error) {
	c.try("adjust", func() error { set, err = c.Store.Adjust(ctx, queue, actor, reason, edit); return err })
	return set, err
}

func (c *crowded) Enqueue(ctx context.Context, ms ...nixie.Message) (receipts []nixie.Receipt, err error) {
	c.try("enqueue", func() error { receipts, err = c.Store.Enqueue(ctx, ms...); return err })
	return receipts, err
}

func (c *crowded) Claim(ctx context.Context, queue string, want nixie.Want) (ds []*nixie.Delivery, err error) {
	c.try("claim", func() error { ds, err = c.Store.Claim(ctx, queue, want); return err })
	return ds, err
}

func (c *crowded) Settle(ctx context.Context, sts []nixie.Settlement) (errs []error) {
	c.try("settle", func() error { errs = c.Store.Settle(ctx, sts); return refusalOf(errs) })
	return errs
}

func (c *crowded) Plan(ctx context.Context, op store.Operation, f nixie.Filter, most int) (planned store.Operation, err error) {
	c.try("plan", func() error { planned, err = c.Store.Plan(ctx, op, f, most); return err })
	return planned, err
}

func (c *crowded) Resolve(ctx context.Context, all []store.Resolution) (errs []error) {
	c.try("resolve", func() error { errs = c.Store.Resolve(ctx, all); return refusalOf(errs) })
	return errs
}

// refusalOf is the error of the disk, if one item has it. Items that are refused for what they are
// get their own error, also on a full disk.
func refusalOf(errs []error) error {
	for _, err := range errs {
		if nixie.CodeOf(err) == nixie.CodeUnavailable {
			return err
		}
	}
	return firstOf(errs...)
}

// transact is one transaction of the caller, whole.
func (c *crowded) transact(key string, before []*nixie.Delivery) (err error) {
	db, err := c.DB()
	if err != nil {
		return err
	}
	c.try("transaction", func() error {
		tx, e := db.Begin()
		if e != nil {
			err = e
			return err
		}
		if err = encloses(c.Tx(tx), tx, key, before); err != nil {
			if e := tx.Rollback(); nixie.CodeOf(e) != "" && nixie.CodeOf(e) != nixie.CodeUnavailable {
				err = e
			}
			return err
		}
		err = tx.Commit()
		return err
	})
	return err
}

// TestFullDisk fills the disk at each write of each call, one after the other. What was refused has
// not happened, what was acknowledged stays, readers go on meanwhile, and once there is
// room the same store goes on and comes to the end as if nothing had been.
func TestFullDisk(t *testing.T) {
	for _, fault := range fullDisks() {
		t.Run(fault.String(), func(t *testing.T) {
			p := &play{t: t, ctx: t.Context(), clock: storetest.NewClock(), disk: faultdisk.New(t, "full")}
			var err error
			p.s, err = sqlite.Open(p.disk.Path("store.db"), sqlite.Options{VFS: p.disk.VFS(), Reserve: -1, Clock: p.clock.Now})
			must(t, err)
			defer p.s.Close() //nolint:errcheck // it may not have come to its end
			refused := 0
			c := &crowded{p.s, func(what string, call func() error) { refused += p.refusals(fault, what, call) }}
			var promises []string
			must(t, drama{c, func(p string) { promises = append(promises, p) }}.play())
			must(t, c.transactions())
			must(t, broken(p.s, promises))
			must(t, goesOn(p.s))
			wrong, err := storetest.Broken(t.Context(), p.s)
			if must(t, err); len(wrong) > 0 {
				t.Errorf("broken: %q", wrong)
			}
			t.Logf("%d writes refused", refused)
			if refused < 200 {
				t.Errorf("only %d writes were refused", refused)
			}
		})
	}
}

// transactions plays some of the caller's, each of which completes the message of the
// one before.
func (c *crowded) transactions() error {
	db, err := c.DB()
	if err != nil {
		return err
	}
	c.try("table", func() error {
		if _, err = db.Exec("create table if not exists app_row (key text primary key)"); err != nil {
			err = nixie.Errorf(nixie.CodeUnavailable, "disk of %s, nothing was changed: %w", c.Path(), err) // their own statement
		}
		return err
	})
	var keys []string
	for n := range 4 {
		key := fmt.Sprint("k", n)
		before, e := c.Claim(context.Background(), "q", nixie.Want{Max: 1, Lease: time.Hour})
		if err = errors.Join(err, e); err == nil {
			err = c.transact(key, before)
		}
		if err != nil {
			return err
		}
		keys = append(keys, key)
	}
	for _, query := range []string{"select key from app_row order by key", "select key from inbox order by key"} {
		if got, err := texts(db, query); err != nil || !slices.Equal(got, keys) {
			return fmt.Errorf("%s: %v, %w", query, got, err)
		}
	}
	return nil
}

// TestIndexCannotGrow commits more than the index of the log has room for, on a disk
// that is full just then. The answer is that the outcome is unknown, as a crash would bring the
// transaction back. No reader sees it, the store goes on, and the next commit decides.
func TestIndexCannotGrow(t *testing.T) {
	for _, again := range []bool{false, true} {
		t.Run(fmt.Sprint("commits again ", again), func(t *testing.T) {
			disk := faultdisk.New(t, "index")
			p := &play{t: t, ctx: t.Context(), clock: storetest.NewClock(), disk: disk}
			p.open()
			defer p.s.Close() //nolint:errcheck // it was only looked at
			_, err := p.s.Enqueue(p.ctx, nixie.Message{Queue: "q", Key: "first"})
			must(t, err)
			before := p.seen(p.s)
			large := make([]nixie.Message, 18) // MiB: more than 4062 pages
			for i := range large {
				large[i] = nixie.Message{Queue: "q", Key: fmt.Sprint("large ", i), Body: make([]byte, 1<<20)}
			}
			disk.FailAt(1, faultdisk.Fault{Calls: faultdisk.ShmMap, Code: lib.SQLITE_IOERR_SHMSIZE})
			_, err = p.s.Enqueue(p.ctx, large...)
			if nixie.CodeOf(err) != nixie.CodeOutcomeUnknown || disk.Fired() != 1 {
				t.Fatalf("%d faults, told %v", disk.Fired(), err)
			}
			if got := p.seen(p.s); got != before {
				t.Error(difference(before, got))
			}
			want := 1 + len(large)
			if again {
				_, err := p.s.Enqueue(p.ctx, nixie.Message{Queue: "q", Key: "second"})
				must(t, err)
				want = 2
			}
			crash, err := disk.CrashAt(disk.Ops(), faultdisk.Modes()[0], 1, t.TempDir())
			must(t, err)
			s, err := sqlite.Open(crash.Path("store.db"), sqlite.Options{Reserve: -1})
			must(t, err)
			defer s.Close() //nolint:errcheck // it was only looked at
			ms, _, err := s.Messages(p.ctx, nixie.Filter{}, store.Page{})
			if must(t, err); len(ms) != want {
				t.Errorf("%d messages after a crash, want %d", len(ms), want)
			}
			must(t, broken(s, nil))
		})
	}
}

// TestFailedSyncEndsTheStore refuses all further use after a sync that failed, also
// where the next one would succeed: it may have written nothing.
func TestFailedSyncEndsTheStore(t *testing.T) {
	disk := faultdisk.New(t, "sync")
	p := &play{t: t, ctx: t.Context(), clock: storetest.NewClock(), disk: disk}
	p.open()
	_, err := p.s.Enqueue(p.ctx, nixie.Message{Queue: "q"})
	must(t, err)
	disk.FailAt(1, faultdisk.Fault{Calls: faultdisk.Sync, File: "-wal"})
	_, unknown := p.s.Enqueue(p.ctx, nixie.Message{Queue: "q"})
	_, later := p.s.Enqueue(p.ctx, nixie.Message{Queue: "q"})
	if nixie.CodeOf(unknown) != nixie.CodeOutcomeUnknown || nixie.CodeOf(later) != nixie.CodeUnavailable ||
		p.s.Features().Patience(later) != 0 {
		t.Errorf("told %v, then %v", unknown, later)
	}
	must(t, p.s.Close())
	p.open()
	must(t, goesOn(p.s))
	must(t, p.s.Close())
}
