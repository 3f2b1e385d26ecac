package postgres

import (
	"context"
	"maps"
	"sync"
	"time"
)

// outsiders follows transactions of callers, which end without us. The process in which one added
// work asks every 50 ms whether it has ended, and then wakes those that wait for that work. A
// notification inside the transaction would make its commit wait for all others that notify.
type outsiders struct {
	mu   sync.Mutex
	open map[int64]map[string]bool // queues by transaction
	stop context.CancelFunc        // nil while no goroutine asks
	shut bool
	all  sync.WaitGroup
}

// follow wakes those that wait for queues once a transaction has ended.
func (o *outsiders) follow(s *Store, transaction int64, queues map[string]bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.shut {
		return
	}
	if o.open == nil {
		o.open = map[int64]map[string]bool{}
	}
	if o.open[transaction] == nil {
		o.open[transaction] = map[string]bool{}
	}
	maps.Copy(o.open[transaction], queues)
	if o.stop == nil {
		ctx, stop := context.WithCancel(context.Background())
		o.stop = stop
		o.all.Go(func() { o.ask(ctx, s) })
	}
}

// ask asks until all transactions have ended.
func (o *outsiders) ask(ctx context.Context, s *Store) {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		ended, err := o.ended(ctx, s)
		if err != nil {
			continue // the server is away, and what was open there is gone or asked for again
		}
		for _, queues := range ended {
			s.tell(queues)
		}
		o.mu.Lock()
		over := len(o.open) == 0
		if over {
			o.stop()
			o.stop = nil
		}
		o.mu.Unlock()
		if over {
			return
		}
	}
}

// ended takes out the transactions that have ended.
func (o *outsiders) ended(ctx context.Context, s *Store) (list []map[string]bool, err error) {
	ctx, stop := context.WithTimeout(ctx, s.opts.AnswerWait)
	defer stop()
	o.mu.Lock()
	open := make([]int64, 0, len(o.open))
	for transaction := range o.open {
		open = append(open, transaction)
	}
	o.mu.Unlock()
	rows, err := s.own.Query(ctx, s.named("ended_transactions.sql"), open)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var transaction int64
		if err := rows.Scan(&transaction); err != nil {
			return list, err
		}
		o.mu.Lock()
		list = append(list, o.open[transaction])
		delete(o.open, transaction)
		o.mu.Unlock()
	}
	return list, rows.Err()
}

// close stops asking. The watch finds what is still open.
func (o *outsiders) close() {
	o.mu.Lock()
	o.shut = true
	if o.stop != nil {
		o.stop()
	}
	o.mu.Unlock()
	o.all.Wait()
}
