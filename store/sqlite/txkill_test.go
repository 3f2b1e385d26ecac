//go:build unix

package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
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
			c.say("ordered", id)
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
			c.say("committing", d.Key)
			if err := tx.Commit(); err != nil {
				return err
			}
			c.say("committed", d.Key)
		}
	}
}

// TestKillInTransaction kills a process whose transactions enclose a row of its
// own and a message: both are there or neither is, and what it was told is
// committed is there.
func TestKillInTransaction(t *testing.T) {
	const kills = 12
	path := storePath(t)
	setUp := open(t, path, sqlite.Options{Reserve: -1})
	db, err := setUp.DB()
	must(t, err)
	execute(t, db, "create table app_order (n integer primary key autoincrement, note text)")
	rng := rand.New(rand.NewPCG(killSeed, 2))
	told := map[string]bool{}
	for i := range kills {
		child := startChild(t, "outbox", path, int64(i))
		for range 1 + rng.IntN(40) {
			told[child.line()[1]] = true
		}
		for _, words := range child.kill() {
			told[words[1]] = true
		}
	}
	rows, enqueued := map[string]bool{}, map[string]bool{}
	for _, m := range messages(t, setUp) {
		enqueued[m.Key] = true
	}
	numbers := ""
	must(t, db.QueryRow("select group_concat(n) from app_order").Scan(&numbers))
	for _, n := range strings.Split(numbers, ",") {
		rows[n] = true
	}
	for n := range told {
		if !rows[n] {
			t.Errorf("order %s was committed and is not there", n)
		}
	}
	for n := range rows {
		if !enqueued[n] {
			t.Errorf("order %s has no message", n)
		}
	}
	if len(enqueued) != len(rows) || len(rows) > len(told)+kills {
		t.Errorf("%d messages of %d orders, %d of them told", len(enqueued), len(rows), len(told))
	}
	storetest.Invariants(t, setUp)
	t.Logf("%d kills, %d orders", kills, len(rows))
}

// TestKillAfterCompletion kills a process between the commit of transactions
// that completed messages and their settlements: no message is run again.
func TestKillAfterCompletion(t *testing.T) {
	const all, kills = 120, 10
	path := storePath(t)
	s := open(t, path, sqlite.Options{Reserve: -1})
	db, err := s.DB()
	must(t, err)
	execute(t, db, "create table app_effect (message text)")
	for i := range all {
		_, err := s.Enqueue(t.Context(), orderMessage(int64(i)))
		must(t, err)
	}
	rng := rand.New(rand.NewPCG(killSeed, 3))
	told := map[string]bool{}
	hear := func(words []string) {
		if words[0] == "committed" {
			told[words[1]] = true
		}
	}
	for i := range kills {
		child := startChild(t, "effects", path, int64(i))
		for range 1 + rng.IntN(12) {
			hear(child.line())
		}
		for _, words := range child.kill() {
			hear(words)
		}
	}
	rs := messages(t, s)
	for _, m := range rs {
		effects := 0
		must(t, db.QueryRow("select count(*) from app_effect where message = ?", m.Key).Scan(&effects))
		if (effects == 1) != (m.State == nixie.Succeeded) || effects > 1 || told[m.Key] && effects != 1 {
			t.Errorf("message %s is %s with %d effects, told %t", m.Key, m.State, effects, told[m.Key])
		}
	}
	if len(rs) != all || len(told) < kills {
		t.Errorf("%d messages, %d told", len(rs), len(told))
	}
	storetest.Invariants(t, s)
	t.Logf("%d kills, %d completed", kills, len(told))
}
