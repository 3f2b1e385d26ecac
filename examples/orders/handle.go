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

// Order is what customers send.
type Order struct {
	ID     string `json:"id"`
	Amount int    `json:"amount"`
	Depot  string `json:"depot"`
}

// placed is the one name of this type of message; producers and handlers use it.
var placed = nixie.NewType[Order]("order-placed", nixie.Queue(queue))

// shop stands for the systems that an order needs. Handlers run at the same
// time, so it has a lock.
type shop struct {
	mu      sync.Mutex
	busy    map[string]int  // depot → how often it says so
	closed  map[string]bool // depots
	charged map[string]int  // order → how often
}

func newShop() *shop {
	return &shop{
		busy:    map[string]int{"east": 2},
		closed:  map[string]bool{"south": true},
		charged: map[string]int{},
	}
}

// handle charges an order and ships it. What it returns says how that went:
// nothing, an error that will not go away, or one that may.
func (s *shop) handle(_ context.Context, job *nixie.Job[Order]) error {
	order := job.Body
	if order.Amount <= 0 {
		return nixie.WithReason(nixie.Permanent(fmt.Errorf("amount is %d", order.Amount)), nixie.ReasonValidation)
	}
	// A step that is done is not done again in a later attempt or life. It is
	// saved with the outcome, so a crash in between repeats it: who charges
	// gives the bank the order's ID, too.
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

// charges says what was charged and how often.
func (s *shop) charges() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []string
	for _, id := range slices.Sorted(maps.Keys(s.charged)) {
		list = append(list, fmt.Sprintf("%s %d×", id, s.charged[id]))
	}
	return strings.Join(list, ", ")
}
