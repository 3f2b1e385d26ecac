package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"github.com/nixie-go/nixie/bench/contest"
	"github.com/nixie-go/nixie/loop"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/worker"
)

// The targets of a group of loops that wait. They are about this process, with all of its store.
const (
	groupLoops    = 100
	mostProcessor = 1.0  // percent of a processor
	mostMemory    = 10.0 // MiB: objects and stacks, without what the open store takes
)

// target is one number that a group has to reach.
type target struct {
	name       string
	have, want float64
}

func (t target) print(out io.Writer, on string) (ok bool) {
	word := "ok"
	if ok = t.have <= t.want; !ok {
		word = "short"
	}
	fmt.Fprintf(out, "target %s-%s %.2f want at most %.2f %s\n", t.name, on, t.have, t.want, word)
	return ok
}

type (
	request = loop.Request[int]
	result  = loop.Result[int]
)

// inGroup measures a group of loops that wait, each on a queue of its own, which had a request.
func (o *options) inGroup(ctx context.Context, st store.Store) (targets []target, err error) {
	before := memory()
	came := make(chan struct{}, groupLoops)
	var loops []loop.Loop
	for i := range groupLoops {
		box, err := loop.In[request, result](st.(loop.Store), fmt.Sprintf("requests-%03d", i), loop.Config{})
		if err != nil {
			return nil, err
		}
		l, err := loop.NewMainLoop(loop.MainConfig[int, int]{
			Requests: box, Worker: worker.Config{Lease: 30 * time.Minute},
			Execute: func(context.Context, request) (int, error) {
				came <- struct{}{}
				return 0, nil
			},
		})
		if err != nil {
			return nil, err
		}
		if _, err := box.Send(ctx, request{}); err != nil {
			return nil, err
		}
		loops = append(loops, l)
	}
	g, err := loop.NewGroup(loop.GroupConfig{Loops: loops, Watchdog: true})
	if err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(ctx)
	var run sync.WaitGroup
	var ended error
	run.Go(func() { ended = g.Run(running) })
	defer func() {
		stop()
		run.Wait()
		err = errors.Join(err, ended)
	}()
	for range groupLoops {
		select {
		case <-came:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if err := sleep(ctx, o.settle); err != nil {
		return nil, err
	}
	begun := contest.ProcessorTime()
	if err := sleep(ctx, o.length); err != nil {
		return nil, err
	}
	used := contest.ProcessorTime() - begun
	return []target{
		{"loop-group-idle", 100 * used.Seconds() / o.length.Seconds(), mostProcessor},
		{"loop-group-memory", float64(memory()-before) / (1 << 20), mostMemory},
	}, nil
}

// memory returns the bytes of living objects and of stacks.
func memory() int64 {
	var m runtime.MemStats
	for range 2 { // the second collection frees what the first one only found
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
