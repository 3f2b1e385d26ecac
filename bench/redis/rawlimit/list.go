package rawlimit

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/nixie-go/nixie/bench/contest"
)

// list is a list of bodies, with one lease for many.
type list struct {
	client *redis.Client
	step   *redis.Script
}

// Keys of the list.
const (
	waiting = "bench:waiting"
	batches = "bench:batches" // the bodies of each batch, as one value
	leases  = "bench:leases"  // the end of the lease of each batch
)

// endAndTake ends a batch and takes another one.
const endAndTake = `
local waiting, batches, leases = unpack(KEYS)
local max, lease, token, ended = unpack(ARGV)
if ended then
	redis.call('HDEL', batches, ended)
	redis.call('ZREM', leases, ended)
end
local bodies = redis.call('LPOP', waiting, max)
if not bodies then
	return {}
end
redis.call('HSET', batches, token, cmsgpack.pack(bodies))
redis.call('ZADD', leases, redis.call('TIME')[1] + lease, token)
return bodies`

func openList(_ context.Context, s contest.Setup) (contest.Library, error) {
	return &list{redis.NewClient(&redis.Options{Addr: s.URL}), redis.NewScript(endAndTake)}, nil
}

func (l *list) Enqueue(ctx context.Context, t contest.Task) error {
	return l.EnqueueBatch(ctx, []contest.Task{t})
}

func (l *list) Batch() int { return perCall }

func (l *list) EnqueueBatch(ctx context.Context, list []contest.Task) error {
	bodies := make([]any, len(list))
	for i, t := range list {
		body, err := json.Marshal(t)
		if err != nil {
			return err
		}
		bodies[i] = body
	}
	return l.client.RPush(ctx, waiting, bodies...).Err()
}

func (l *list) Start(ctx context.Context, handle contest.Handler) (func() error, error) {
	return step(l.next).start(ctx, handle)
}

func (l *list) next(ctx context.Context, w *worker) ([]string, error) {
	args := append([]any{perCall, lease, w.token()}, w.ended...)
	w.ended = []any{w.token()}
	return l.step.Run(ctx, l.client, []string{waiting, batches, leases}, args...).StringSlice()
}

// Left counts a batch as one message.
func (l *list) Left(ctx context.Context) (int, error) {
	n, err := l.client.LLen(ctx, waiting).Result()
	if err != nil {
		return 0, err
	}
	taken, err := l.client.HLen(ctx, batches).Result()
	return int(n + taken), err
}

func (l *list) Dead(context.Context) (int, error) { return 0, nil }

func (l *list) Each(context.Context, func(contest.Task) error) error {
	return errors.New("the list takes part in drains only")
}

func (l *list) Close() error { return l.client.Close() }
