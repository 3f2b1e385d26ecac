package broker

import (
	"context"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
)

var _ lease.Renewer = (*Source)(nil)

// MaxLease implements [lease.Renewer].
func (s *Source) MaxLease() time.Duration { return s.features.MaxLease }

// Renew implements [lease.Renewer]. It drops what the driver has lost.
func (s *Source) Renew(ctx context.Context, lease time.Duration) error {
	if s.features.Held {
		return nil
	}
	return s.extendUndelivered(ctx, lease)
}

// newestLease returns the lease that the newest Receive wanted.
func (s *Source) newestLease() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lease
}

// renewWaited renews the leases of deliveries whose records waited in hand: they have used a part
// of their lease. It returns those that may run. The others are lost, or go back into the hand.
func (s *Source) renewWaited(ctx context.Context, got []*nixie.Delivery, lease time.Duration) ([]*nixie.Delivery, error) {
	waited := s.waited(got)
	if len(waited) == 0 {
		return got, nil
	}
	var back []*nixie.Delivery
	var failed error
	for n, err := range s.Extend(ctx, waited, lease) {
		if err == nil {
			continue
		}
		got = slices.DeleteFunc(got, func(d *nixie.Delivery) bool { return d == waited[n] })
		if nixie.CodeOf(err) != nixie.CodeLeaseLost {
			failed, back = err, append(back, waited[n])
		}
	}
	s.takeBack(back)
	return got, failed
}

// waited lists the deliveries whose records an earlier call of Receive brought.
func (s *Source) waited(ds []*nixie.Delivery) (list []*nixie.Delivery) {
	if s.features.Held {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range ds {
		if i, _, err := s.lookUp(d); err == nil && i.chunk.receive != s.receives {
			list = append(list, d)
		}
	}
	return list
}

// takeBack undoes deliveries that no worker has got.
func (s *Source) takeBack(ds []*nixie.Delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range ds {
		i, at, err := s.lookUp(d)
		if err != nil {
			continue
		}
		s.freeSlot(at)
		d.Deliveries--
		if !d.Abandoned {
			d.Attempts--
		}
		i.judged = !d.Abandoned
		s.makeReady(i)
	}
}

// Extend asks the broker which records this source still holds.
func (s *Source) Extend(ctx context.Context, ds []*nixie.Delivery, lease time.Duration) []error {
	errs := make([]error, len(ds))
	items := s.find(ds, errs)
	var asked []int
	var records []*Record
	for n, i := range items {
		if i != nil {
			asked = append(asked, n)
			records = append(records, i.record)
		}
	}
	for n, err := range s.c.Driver.Extend(ctx, records, lease) {
		errs[asked[n]] = err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, d := range ds {
		if nixie.CodeOf(errs[n]) == nixie.CodeLeaseLost {
			s.dropLost(d)
		}
		if items[n] != nil {
			s.release(items[n].chunk)
		}
	}
	return errs
}

// find returns the items of deliveries and keeps their chunks in use. It sets the error of a
// delivery whose lease is over.
func (s *Source) find(ds []*nixie.Delivery, errs []error) []*item {
	items := make([]*item, len(ds))
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, d := range ds {
		if items[n], _, errs[n] = s.lookUp(d); items[n] != nil {
			items[n].chunk.uses++
		}
	}
	return items
}

// dropLost forgets a lost item, if its lease is still this one. An item that a call is settling
// stays: that call will notice the loss. The caller holds the mutex.
func (s *Source) dropLost(d *nixie.Delivery) {
	if i, at, err := s.lookUp(d); err == nil && !i.settling {
		s.freeSlot(at)
		s.forget(i)
		s.interrupt()
	}
}
