package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
)

// shop is a program that keeps its orders in the file of its store.
type shop struct {
	st     *sqlite.Store
	db     *sql.DB
	folder string
}

func openShop() (*shop, error) {
	folder, err := os.MkdirTemp("", "shop-")
	if err != nil {
		return nil, err
	}
	s := &shop{folder: folder}
	if s.st, err = sqlite.Open(filepath.Join(folder, "shop.db"), sqlite.Options{}); err != nil {
		return nil, err
	}
	if s.db, err = s.st.DB(); err != nil {
		return nil, err
	}
	_, err = s.db.Exec("create table shop_order (number integer primary key, paid integer not null default 0)")
	return s, err
}

func (s *shop) close() error { return errors.Join(s.st.Close(), os.RemoveAll(s.folder)) }

// inTx runs do in a transaction, which commits if do returns nil.
func (s *shop) inTx(do func(tx *sql.Tx) error) error {
	tx, err := s.db.Begin()
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

func (s *shop) count(query string) (n int) {
	if err := s.db.QueryRow(query).Scan(&n); err != nil {
		fmt.Println(err)
	}
	return n
}

func (s *shop) claim(ctx context.Context) (*nixie.Delivery, error) {
	ds, err := s.st.Claim(ctx, "confirmations", nixie.Want{Max: 1})
	if err != nil || len(ds) == 0 {
		return nil, errors.Join(err, errors.New("nothing to do"))
	}
	return ds[0], nil
}

var errSoldOut = errors.New("sold out")

// An order and the message about it are there together or not at all: no
// message about an order that was rolled back, no order without a message.
func ExampleStore_Tx() {
	shop, err := openShop()
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	confirm := nixie.NewType[int]("confirm-order", nixie.Queue("confirmations"))

	for number, soldOut := range []bool{false, true, false} {
		err := shop.inTx(func(tx *sql.Tx) error {
			if _, err := tx.Exec("insert into shop_order (number) values (?)", number); err != nil {
				return err
			}
			if _, err := confirm.Enqueue(ctx, shop.st.Tx(tx), number); err != nil {
				return err
			}
			if soldOut {
				return errSoldOut
			}
			return nil
		})
		fmt.Println("order", number, err)
	}

	queues, err := shop.st.Queues(ctx, store.QueueQuery{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(shop.count("select count(*) from shop_order"), "orders,", queues[0].Ready, "messages")
	fmt.Println(shop.close())
	// Output:
	// order 0 <nil>
	// order 1 sold out
	// order 2 <nil>
	// 2 orders, 2 messages
	// <nil>
}

// A payment that the bank reports three times is booked once.
func ExampleTx_Once() {
	shop, err := openShop()
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	if _, err := shop.db.Exec("insert into shop_order (number) values (7)"); err != nil {
		fmt.Println(err)
	}

	for range 3 {
		err := shop.inTx(func(tx *sql.Tx) error {
			first, err := shop.st.Tx(tx).Once(ctx, "bank", "payment-4711")
			if err != nil || !first {
				fmt.Println("seen before")
				return err
			}
			fmt.Println("booked")
			_, err = tx.Exec("update shop_order set paid = paid + 20 where number = 7")
			return err
		})
		if err != nil {
			fmt.Println(err)
		}
	}

	fmt.Println("paid", shop.count("select paid from shop_order where number = 7"))
	fmt.Println(shop.close())
	// Output:
	// booked
	// seen before
	// seen before
	// paid 20
	// <nil>
}

// A handler completes its message together with its own rows. A handler that has lost
// the lease by then is refused, and what it did is rolled back.
func ExampleTx_Complete() {
	shop, err := openShop()
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	if _, err := shop.st.Enqueue(ctx, nixie.Message{Queue: "confirmations", Key: "7"}); err != nil {
		fmt.Println(err)
	}
	handle := func(ctx context.Context, d *nixie.Delivery) error {
		return shop.inTx(func(tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, "insert into shop_order (number, paid) values (?, 1)", d.Key); err != nil {
				return err
			}
			return shop.st.Tx(tx).Complete(ctx, d)
		})
	}

	d, err := shop.claim(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	if errs := shop.st.Amend(ctx, []nixie.ID{d.ID},
		store.Change{Verb: store.Cancel, Actor: "ann", Reason: "not wanted any more"}); errs[0] != nil {
		fmt.Println(errs[0])
	}
	err = handle(ctx, d)
	fmt.Println(nixie.CodeOf(err), shop.count("select count(*) from shop_order"), d.Completed())

	if _, err := shop.st.Enqueue(ctx, nixie.Message{Queue: "confirmations", Key: "8"}); err != nil {
		fmt.Println(err)
	}
	if d, err = shop.claim(ctx); err != nil {
		fmt.Println(err)
		return
	}
	err = handle(ctx, d) // a worker would now settle it, and find that done
	fmt.Println(err, shop.count("select count(*) from shop_order"), d.Completed())
	fmt.Println(shop.close())
	// Output:
	// lease-lost 0 false
	// <nil> 1 true
	// <nil>
}
