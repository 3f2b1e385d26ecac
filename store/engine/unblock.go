package engine

import (
	"context"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// Unblock implements store.Streams.
func (e *Engine) Unblock(ctx context.Context, u store.Unblocking) (int64, error) {
	if err := u.Check(); err != nil {
		return 0, err
	}
	var n int64
	err := e.driver.Update(ctx, How{}, func(tx Tx) (err error) {
		n, err = unblock(tx, &u)
		return err
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// unblock lets the followers of a stream go on. They may be thousands, so they do not pass through
// the facts.
func unblock(tx Tx, u *store.Unblocking) (n int64, err error) {
	facts, err := tx.Load(&Want{Stream: u})
	if err != nil {
		return 0, err
	}
	s := facts.Stream
	switch {
	case s == nil:
		return 0, store.NoStream(u.Queue, u.Stream)
	case !u.Mark, s.Queue.Settings.Order == nixie.OrderStrict:
		n, err = tx.LetGo(s, u.Mark)
	}
	if err != nil {
		return 0, err
	}
	if n == 0 {
		return 0, u.Nothing()
	}
	c := call{Facts: facts}
	c.record(s.Queue.Number, store.AuditEntry{Actor: u.Actor, Event: store.OnUnblock, Subject: s.Head, Reason: u.Note()})
	return n, tx.Write(&c.changes)
}
