package redis

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// waker blocks on the key that says that there are records. A call that it has begun goes on when
// its caller leaves: the next caller waits for the same one.
type waker struct {
	client redis.UniversalClient
	key    string

	mu      sync.Mutex
	blocked chan struct{} // closed when the running call ends; nil: none runs
}

// wait returns when there may be records, after limit, or when ctx ends.
func (w *waker) wait(ctx context.Context, limit time.Duration) {
	w.mu.Lock()
	if w.blocked == nil {
		w.blocked = make(chan struct{})
		go w.block(w.blocked) //nolint:gosec // it goes on when its caller leaves
	}
	woken := w.blocked
	w.mu.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-woken:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// block waits for an element of the key and takes it. If its caller does not look for records then,
// others are woken by the next record, or look by themselves after [poll].
func (w *waker) block(done chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	seconds := strconv.FormatFloat(poll.Seconds(), 'f', -1, 64)
	err := w.client.Process(ctx, redis.NewStringSliceCmd(ctx, "blpop", w.key, seconds))
	w.mu.Lock()
	w.blocked = nil
	w.mu.Unlock()
	if err != nil && err != redis.Nil {
		sleep(ctx, poll) // the next claim tells what is wrong
	}
	close(done)
}

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
