package sqlite_test

import (
	"context"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/proof/child"
	"github.com/nixie-go/nixie/store/sqlite"
	"github.com/nixie-go/nixie/store/storetest"
)

// drain claims and completes until the queue is empty, in several goroutines,
// and says who had what and how long settling took.
func (c *childProcess) drain(goroutines int) error {
	c.Say("ready")
	if err := c.Wait(); err != nil {
		return err
	}
	var wg sync.WaitGroup
	errs := make(chan error, goroutines)
	for range goroutines {
		wg.Go(func() { errs <- c.drainOne() })
	}
	wg.Wait()
	for range goroutines {
		if err := <-errs; err != nil {
			return err
		}
	}
	return nil
}

func (c *childProcess) drainOne() error {
	ctx := context.Background()
	for {
		ds, err := c.s.Claim(ctx, "q", nixie.Want{Max: 5, Lease: time.Hour})
		if err != nil {
			return err
		}
		if len(ds) == 0 {
			return nil
		}
		sts := make([]nixie.Settlement, len(ds))
		for i, d := range ds {
			c.Say("claimed", d.ID, d.Lease.Number, d.Generation)
			sts[i] = nixie.Settlement{Delivery: d, Verb: nixie.Complete}
		}
		start := time.Now()
		for i, err := range c.s.Settle(ctx, sts) {
			if err != nil {
				return err
			}
			c.Say("settled", ds[i].ID, ds[i].Lease.Number, ds[i].Generation, nixie.Complete)
		}
		c.Say("took", time.Since(start).Nanoseconds())
	}
}

// TestOpenANewStoreTogether lets processes make the same store at once: all of
// them get in. One used to be told that the store is locked.
func TestOpenANewStoreTogether(t *testing.T) {
	for range 60 {
		path := storePath(t)
		var ps [4]*child.Process
		for i := range ps {
			ps[i] = startChild(t, "hold", path, 1000)
		}
		for _, p := range ps {
			p.Line()
			p.Kill()
		}
	}
}

// TestR11_ManyProcesses lets processes with several goroutines each work off
// one queue. No message has two holders, every process gets its share, and
// no process waits long for the others.
func TestR11_ManyProcesses(t *testing.T) {
	const processes, goroutines, messages = 8, 3, 12_000
	path := storePath(t)
	s := open(t, path, sqlite.Options{Reserve: -1})
	fill(t, s, "q", messages)
	var all [processes]*child.Process
	for i := range all {
		all[i] = startChild(t, "drain", path, goroutines)
	}
	for _, p := range all {
		p.Line()
	}
	for _, p := range all {
		p.GoOn()
	}
	heard := newPromises()
	var counts []int
	var took []time.Duration
	for _, p := range all {
		n := 0
		for words := range p.Lines {
			switch words[0] {
			case "took":
				ns, err := strconv.ParseInt(words[1], 10, 64)
				must(t, err)
				took = append(took, time.Duration(ns))
			case "settled":
				n++
				heard.hear(words)
			default:
				heard.hear(words)
			}
		}
		p.Wait()
		counts = append(counts, n)
	}
	storetest.Invariants(t, s)
	for _, b := range heard.broken {
		t.Error(b)
	}
	if len(heard.ends) != messages || len(heard.leases) != messages {
		t.Errorf("%d leases and %d ends of %d messages", len(heard.leases), len(heard.ends), messages)
	}
	slices.Sort(took)
	wal, err := os.Stat(path + "-wal")
	must(t, err)
	t.Logf("messages by process: %v; settle p50 %s, p99 %s, longest %s; WAL %d KiB",
		counts, took[len(took)/2], took[len(took)*99/100], took[len(took)-1], wal.Size()>>10)
	if least := messages / processes / 5; slices.Min(counts) < least {
		t.Errorf("a process starved: it got less than %d messages", least)
	}
}
