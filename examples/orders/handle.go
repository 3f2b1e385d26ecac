package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/nixie-go/nixie"
)

const queue = "orders"

// Order is the order of a customer.
type Order struct {
	ID     string `json:"id"`
	Amount int    `json:"amount"`
	Depot  string `json:"depot"`
}

// placed is the only name of this type of message; producers and handlers use it.
var placed = nixie.NewType[Order]("order-placed", nixie.Queue(queue))

// shop stands for the systems that an order needs. Handlers run concurrently, so it has a lock.
type shop struct {
	mu      sync.Mutex
	busy    map[string]int  // by depot: the number of tries that it refuses
	closed  map[string]bool // by depot
	charged map[string]int  // by order: the number of charges
}

func newShop() *shop {
	return &shop{
		busy:    map[string]int{"east": 2},
		closed:  map[string]bool{"south": true},
		charged: map[string]int{},
	}
}

// handle charges an order and ships it. It returns nil, a permanent error, or an error that may go
// away.
func (s *shop) handle(_ context.Context, job *nixie.Job[Order]) error {
	order := job.Body
	if order.Amount <= 0 {
		return nixie.WithReason(nixie.Permanent(fmt.Errorf("amount is %d", order.Amount)), nixie.ReasonValidation)
	}
	// A later attempt or generation does not repeat a finished step. The step is saved with the
	// outcome, so a crash in between repeats it: give the bank the order's ID, too.
	if err := job.Step("charge", func() error { return s.charge(order) }); err != nil {
		return err
	}
	return job.Step("ship", func() error { return s.ship(order) })
}

func (s *shop) charge(o Order) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.charged[o.ID]++
	return nil
}

func (s *shop) ship(o Order) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed[o.Depot] {
		return nixie.WithReason(fmt.Errorf("depot %s is closed", o.Depot), nixie.ReasonDependency)
	}
	if s.busy[o.Depot] > 0 {
		s.busy[o.Depot]--
		return nixie.WithReason(fmt.Errorf("depot %s is busy", o.Depot), nixie.ReasonThrottled)
	}
	return nil
}

func (s *shop) open(depot string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.closed, depot)
}

// charges lists the charged orders.
func (s *shop) charges() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []string
	for _, id := range slices.Sorted(maps.Keys(s.charged)) {
		list = append(list, fmt.Sprintf("%s %d×", id, s.charged[id]))
	}
	return strings.Join(list, ", ")
}
