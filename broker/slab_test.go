package broker_test

import (
	"context"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/broker/brokertest"
)

// between does something before it asks which records are still ours.
type between struct {
	*brokertest.LogDriver
	do      func()
	spoiled bool
}

func (b *between) Extend(ctx context.Context, records []*broker.Record, lease time.Duration) []error {
	b.do()
	for _, r := range records {
		b.spoiled = b.spoiled || r.Receipt == "recycled"
	}
	return b.LogDriver.Extend(ctx, records, lease)
}

// The memory of records is used again when nobody looks at them any more: not while a
// lease is extended that is settled meanwhile, and not before the last of them is done
// with. The driver spoils what it gets back.
func TestRecordsAreUsedAgainWhenNobodyLooks(t *testing.T) {
	l := brokertest.NewLog()
	produce(t, l, 3)
	d := &between{LogDriver: l.Join(t).(*brokertest.LogDriver)}
	s, err := broker.New(broker.Config{Driver: d, Letters: broker.DefaultLetters})
	if err != nil {
		t.Fatal(err)
	}
	var ds []*nixie.Delivery
	for len(ds) < 3 {
		got, err := s.Receive(t.Context(), nixie.Want{Max: 10, Wait: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		ds = append(ds, got...)
	}
	settle := func() {
		for n, d := range ds {
			st := nixie.Settlement{Delivery: d, Verb: nixie.Complete}
			if n == 2 {
				st = nixie.Settlement{Delivery: d, Verb: nixie.Bury, Burial: &nixie.Burial{Cause: nixie.CausePermanent}}
			}
			if err := s.Settle(t.Context(), []nixie.Settlement{st})[0]; err != nil {
				t.Error(err)
			}
		}
	}
	d.do = func() { d.do = func() {}; settle() }
	for _, err := range s.Extend(t.Context(), ds, time.Minute) {
		if err != nil && nixie.CodeOf(err) != nixie.CodeLeaseLost {
			t.Error(err)
		}
	}
	if d.spoiled {
		t.Error("a record was used again while somebody looked at it")
	}
	letters := l.Records(t, l.Source()+".dlq")
	if len(letters) != 1 || string(letters[0].Value) != string(ds[2].Body) {
		t.Errorf("letters: %+v", letters)
	}
}
