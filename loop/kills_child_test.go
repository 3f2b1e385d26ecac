package loop_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/broker/redis"
	"github.com/nixie-go/nixie/internal/proof/child"
	"github.com/nixie-go/nixie/internal/proof/faultdisk"
	"github.com/nixie-go/nixie/loop"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
	"github.com/nixie-go/nixie/store/sqlite"
	"github.com/nixie-go/nixie/worker"
)

// cell is one kill: of a worker, or of the store that its mailboxes are in, when the worker has
// come to a point. A worker has one request, which is good or bad.
type cell struct {
	On      string // sqlite, postgres or redis
	Address string // a folder, a URL, or a host and port
	Name    string // begins the names of the mailboxes
	Point   string
	After   bool // the call at the point has succeeded, and its worker does not know
	Store   bool // the store is killed
	Gone    bool // there is no mailbox for the answer
	Bad     bool // the request dies
}

// answers names the mailbox that hears of the request, without the name of the cell.
func (c *cell) answers() string {
	if c.Gone {
		return "answers-dlq"
	}
	return "answers"
}

// Points of a worker.
const (
	atReceive     = "receive"
	atProcess     = "process"
	atBury        = "bury"
	atReply       = "reply"
	atAcknowledge = "acknowledge"
)

// Words that a worker says.
const (
	saysRan  = "ran"
	saysHere = "here" // it has come to the point
)

// closer closes a store or a driver.
type closer func() error

// box opens one of the mailboxes of a cell. With watch it stops at the point of the cell.
func box[T, R any](c *cell, name string, watch *watch) (*loop.Mailbox[T, R], closer, error) {
	name = c.Name + name
	if c.On == "redis" {
		d, err := redis.Open(ctx, redis.Config{Address: redis.Address{Servers: []string{c.Address}, Mailbox: name}})
		if err != nil {
			return nil, nil, err
		}
		var driver broker.Driver = d
		if watch != nil {
			driver = watchedDriver{d, watch}
		}
		if err := d.Create(ctx, broker.ChannelName(broker.DefaultLetters, name), nil); err != nil {
			return nil, nil, err
		}
		m, err := loop.Over[T, R](broker.Config{Driver: driver, Queue: name, Letters: broker.DefaultLetters}, loop.Config{Logger: quiet})
		return m, func() error { return d.Close(ctx) }, err
	}
	whole, end, err := open(c, watch)
	if err != nil {
		return nil, nil, err
	}
	var st loop.Store = whole
	if watch != nil {
		st = watchedStore{st, watch}
	}
	m, err := loop.In[T, R](st, name, loop.Config{Logger: quiet})
	return m, end, err
}

// open opens the store of a cell.
func open(c *cell, watch *watch) (store.Store, closer, error) {
	if c.On == "postgres" {
		st, err := postgres.Open(ctx, c.Address, postgres.Options{})
		if err != nil {
			return nil, nil, err
		}
		return st, st.Close, nil
	}
	var o sqlite.Options
	if watch != nil && watch.disk != nil {
		o.VFS = watch.disk.VFS()
	}
	st, err := sqlite.Open(filepath.Join(c.Address, "nixie.db"), o)
	if err != nil {
		return nil, nil, err
	}
	return st, st.Close, nil
}

// answering makes the loop that answers the request of a cell. Ran hears of each run.
func answering(c *cell, requests *loop.Mailbox[request, result], ran func()) (*loop.MainLoop[string, float64], error) {
	held := time.Second
	if c.On == "postgres" {
		// A server that is away, or has a transaction of the dead, keeps a worker for a while.
		held = 4 * time.Second
	}
	return loop.NewMainLoop(loop.MainConfig[string, float64]{
		Requests: requests, Worker: worker.Config{Concurrency: 1, Lease: held, Logger: quiet},
		Execute: func(_ context.Context, req request) (float64, error) {
			ran()
			if req.Request == "bad" {
				return 0, nixie.Permanent(errOther)
			}
			return 42, nil
		},
	})
}

// answerAsChild is a worker that a test kills, or whose store it kills.
func answerAsChild(args []string) error {
	w := &watch{}
	if err := json.Unmarshal([]byte(args[1]), &w.cell); err != nil {
		return err
	}
	if w.On == "sqlite" && w.Store {
		w.disk = faultdisk.NewAt(noTest{}, "killed", w.Address)
	}
	requests, _, err := box[request, result](&w.cell, "requests", w)
	if err != nil {
		return err
	}
	l, err := answering(&w.cell, requests, func() {
		w.voice.Say(saysRan)
		w.here(atProcess, false)
	})
	if err != nil {
		return err
	}
	return l.Run(ctx)
}

// noTest is the test of a disk in a child.
type noTest struct{ testing.TB }

func (noTest) Helper()        {}
func (noTest) Cleanup(func()) {} // the child is killed

// watch stops a worker at the point of its cell, once.
type watch struct {
	cell
	voice child.Voice
	disk  *faultdisk.Disk // on which the power fails; nil: it is not
	begun int             // changes to the disk before the call that is under way
	fired atomic.Bool
}

// here is called when the worker is at a point. It reports whether the store is killed there, so
// that the worker does not get the answer of its call.
func (w *watch) here(point string, after bool) (lost bool) {
	if point != w.Point || after != w.After || w.fired.Swap(true) {
		return false
	}
	if w.disk != nil {
		w.powerFails()
	}
	w.voice.Say(saysHere)
	if err := w.voice.Wait(); err != nil {
		panic(err) // the test has failed
	}
	return true
}

// powerFails writes what is on the disk if the power fails now or, for a reply, in the middle of
// the transaction that has it.
func (w *watch) powerFails() {
	at := w.disk.Ops()
	if w.Point == atReply {
		at = (w.begun + at) / 2
	}
	if _, err := w.disk.CrashAt(at, faultdisk.None, 0, filepath.Join(w.Address, afterwards)); err != nil {
		panic(err)
	}
}

// afterwards is the folder with what is left after the power has failed.
const afterwards = "afterwards"

// errLost is the answer of a call whose store was killed before it answered.
var errLost = nixie.Errorf(nixie.CodeOutcomeUnknown, "the store was killed before it answered")

// watchedStore is a store for a worker that stops.
type watchedStore struct {
	loop.Store
	*watch
}

func (s watchedStore) Claim(ctx context.Context, queue string, want nixie.Want) ([]*nixie.Delivery, error) {
	ds, err := s.Store.Claim(ctx, queue, want)
	if len(ds) > 0 && s.here(atReceive, true) {
		return nil, errLost
	}
	return ds, err
}

func (s watchedStore) Settle(ctx context.Context, sts []nixie.Settlement) []error {
	point := atAcknowledge
	if sts[0].Burial != nil {
		point = atBury
	}
	s.here(point, false)
	if s.disk != nil {
		s.begun = s.disk.Ops()
	} else if s.On == "sqlite" && s.Point == atReply && !s.fired.Swap(true) {
		s.voice.Say(saysHere) // and it goes on: the kill comes while the settlement is on its way
	}
	errs := s.Store.Settle(ctx, sts)
	if errs[0] == nil && (s.here(point, true) || s.disk != nil && s.here(atReply, true)) {
		errs[0] = errLost
	}
	return errs
}

// watchedDriver is a broker for a worker that stops.
type watchedDriver struct {
	broker.Driver
	*watch
}

func (d watchedDriver) Receive(ctx context.Context, want broker.Want) ([]broker.Record, error) {
	records, err := d.Driver.Receive(ctx, want)
	if len(records) > 0 && d.here(atReceive, true) {
		return nil, errLost
	}
	return records, err
}

func (d watchedDriver) Publish(ctx context.Context, records []broker.Publication) func() []error {
	point := atBury
	for i := range records {
		if strings.TrimPrefix(records[i].Channel, d.Name) == d.answers() {
			point = atReply
		}
	}
	d.here(point, false)
	answers := d.Driver.Publish(ctx, records)
	return func() []error {
		errs := answers()
		if errs[0] == nil && d.here(point, true) {
			errs[0] = errLost
		}
		return errs
	}
}

func (d watchedDriver) Ack(ctx context.Context, records []*broker.Record) []error {
	d.here(atAcknowledge, false)
	errs := d.Driver.Ack(ctx, records)
	if errs[0] == nil && d.here(atAcknowledge, true) {
		errs[0] = errLost
	}
	return errs
}
