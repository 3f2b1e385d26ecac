package broker_test

import (
	"context"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/broker/brokertest"
)

// between calls do before it extends leases.
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

// The source uses the memory of records again only after their last use: not while one call extends
// a lease that another call settles, and not before the last record is done. The driver spoils the
// records that it gets back.
func TestChunkIsReusedAfterItsLastUse(t *testing.T) {
	l := brokertest.NewLog()
	produce(t, l, 3)
	d := &between{LogDriver: l.Join(t).(*brokertest.LogDriver)}
	s := newSource(t, broker.Config{Driver: d})
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
		t.Error("a record was used again while a call used it")
	}
	letters := l.Records(t, l.Source()+".dlq")
	if len(letters) != 1 || string(letters[0].Value) != string(ds[2].Body) {
		t.Errorf("letters: %+v", letters)
	}
}
