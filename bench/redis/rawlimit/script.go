package rawlimit

import (
	"context"
	"errors"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/nixie-go/nixie/bench/contest"
	"github.com/nixie-go/nixie/bench/redis/entrants/mailbox"
	"github.com/nixie-go/nixie/broker/redis"
)

// script is Nixie's mailbox, from which only the script itself receives.
type script struct {
	contest.Library
	client *goredis.Client
	verbs  *goredis.Script
}

func openScript(ctx context.Context, s contest.Setup) (contest.Library, error) {
	nixie, err := mailbox.Entrant().Open(ctx, s)
	if err != nil {
		return nil, err
	}
	return &script{nixie, goredis.NewClient(&goredis.Options{Addr: s.URL}), goredis.NewScript(redis.Script)}, nil
}

func (l *script) Start(ctx context.Context, handle contest.Handler) (func() error, error) {
	return step(l.next).start(ctx, handle)
}

func (l *script) next(ctx context.Context, w *worker) ([]string, error) {
	if len(w.ended) > 0 {
		if err := l.call(ctx, "ack", w.ended...).Err(); err != nil {
			return nil, err
		}
	}
	token := w.token()
	out, err := l.call(ctx, "claim", perCall, lease*1000, token).StringSlice()
	if err != nil {
		return nil, err
	}
	const head = 4 // fields before the records, which have three
	if len(out) < head {
		return nil, errors.New("the script answered in an unknown form")
	}
	var bodies []string
	w.ended = w.ended[:0]
	for at := head; at < len(out); at += 3 {
		w.ended = append(w.ended, out[at], token)
		bodies = append(bodies, out[at+1][strings.IndexByte(out[at+1], '{'):]) // the value is the last field
	}
	return bodies, nil
}

func (l *script) call(ctx context.Context, verb string, args ...any) *goredis.Cmd {
	tag := "nixie:{" + mailbox.Name + "}:"
	keys := []string{tag + "pending", tag + "held", tag + "records", tag + "counts", tag + "holders", tag + "wake"}
	return l.verbs.Run(ctx, l.client, keys, append([]any{verb}, args...)...)
}

func (l *script) Close() error { return errors.Join(l.client.Close(), l.Library.Close()) }
