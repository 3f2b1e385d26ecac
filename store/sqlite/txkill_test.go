package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/sqlite"
	"github.com/nixie-go/nixie/store/storetest"
)

// outbox writes a row of its own and enqueues a message about it, in one
// transaction, for ever. It rolls some of them back.
func (c *childProcess) outbox() error {
	for n := 1; ; n++ {
		id, err := c.order(n%5 != 0)
		if err != nil {
			return err
		}
		if n%5 != 0 {
			c.Say("ordered", id)
		}
	}
}

func (c *childProcess) order(commit bool) (id int64, err error) {
	db, err := c.s.DB()
	if err != nil {
		return 0, err
	}
	tx, err := db.Begin()
	if err != nil {
		return 0, err
	}
	row, err := tx.Exec("insert into app_order (note) values ('new')")
	if err != nil {
		return 0, errors.Join(err, tx.Rollback())
	}
	if id, err = row.LastInsertId(); err != nil {
		return 0, errors.Join(err, tx.Rollback())
	}
	if _, err := c.s.Tx(tx).Enqueue(context.Background(), orderMessage(id)); err != nil {
		return 0, errors.Join(err, tx.Rollback())
	}
	if !commit {
		return id, tx.Rollback()
	}
	return id, tx.Commit()
}

func orderMessage(id int64) nixie.Message { return nixie.Message{Queue: "q", Key: fmt.Sprint(id)} }

// effects claims, writes an effect of each message together with its completion,
// and says so, but never settles.
func (c *childProcess) effects() error {
	db, err := c.s.DB()
	if err != nil {
		return err
	}
	for {
		ds, err := c.s.Claim(context.Background(), "q", nixie.Want{Max: 3, Lease: time.Minute})
		if err != nil {
			return err
		}
		for _, d := range ds {
			tx, err := db.Begin()
			if err != nil {
				return err
			}
			if _, err := tx.Exec("insert into app_effect (message) values (?)", d.Key); err != nil {
				return errors.Join(err, tx.Rollback())
			}
			if err := c.s.Tx(tx).Complete(context.Background(), d); err != nil {
				return errors.Join(err, tx.Rollback())
			}
			c.Say("committing", d.Key)
			if err := tx.Commit(); err != nil {
				return err
			}
			c.Say("committed", d.Key)
		}
	}
}

// inTransaction kills a process whose transactions enclose a row of its own and a
// message: both are there or neither is, and what it was told is committed is
// there.
func (k *killing) inTransaction() {
	setUp := open(k.T, k.path, sqlite.Options{Reserve: -1})
	db, err := setUp.DB()
	must(k.T, err)
	execute(k.T, db, "create table app_order (n integer primary key autoincrement, note text)")
	for k.kills < killsOfOne {
		k.kill(k.start("outbox"), 1+k.rng.IntN(40), "")
	}
	told := k.heard.told
	rows, enqueued := map[string]bool{}, map[string]bool{}
	for _, m := range messages(k.T, setUp) {
		enqueued[m.Key] = true
	}
	numbers := ""
	must(k.T, db.QueryRow("select coalesce(group_concat(n), '') from app_order").Scan(&numbers))
	for _, n := range strings.FieldsFunc(numbers, func(r rune) bool { return r == ',' }) {
		rows[n] = true
	}
	for n := range told {
		if !rows[n] {
			k.Errorf("order %s was committed and is not there", n)
		}
	}
	for n := range rows {
		if !enqueued[n] {
			k.Errorf("order %s has no message", n)
		}
	}
	if len(enqueued) != len(rows) || len(rows) > len(told)+k.kills {
		k.Errorf("%d messages of %d orders, %d of them told", len(enqueued), len(rows), len(told))
	}
	storetest.Invariants(k.T, setUp)
}

// afterCompletion kills a process between the commit of transactions that
// completed messages and their settlements: no message is run again.
func (k *killing) afterCompletion() {
	const all = 120
	s := open(k.T, k.path, sqlite.Options{Reserve: -1})
	db, err := s.DB()
	must(k.T, err)
	execute(k.T, db, "create table app_effect (message text)")
	for i := range all {
		_, err := s.Enqueue(k.Context(), orderMessage(int64(i)))
		must(k.T, err)
	}
	for k.kills < killsOfOne {
		k.kill(k.start("effects"), 2+k.rng.IntN(12), "")
	}
	told := k.heard.told
	rs := messages(k.T, s)
	for _, m := range rs {
		effects := 0
		must(k.T, db.QueryRow("select count(*) from app_effect where message = ?", m.Key).Scan(&effects))
		if (effects == 1) != (m.State == nixie.Succeeded) || effects > 1 || told[m.Key] && effects != 1 {
			k.Errorf("message %s is %s with %d effects, told %t", m.Key, m.State, effects, told[m.Key])
		}
	}
	if len(rs) != all || len(told) < k.kills/2 {
		k.Errorf("%d messages, %d told", len(rs), len(told))
	}
	storetest.Invariants(k.T, s)
}
