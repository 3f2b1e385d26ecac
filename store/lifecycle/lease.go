package lifecycle

import (
	"slices"

	"github.com/nixie-go/nixie"
)

// Lost is the answer to whoever works on a message under a lease that is over.
func Lost(d *nixie.Delivery) error {
	return nixie.Errorf(nixie.CodeLeaseLost, "lease %d of message %s is over: its outcome was not recorded, another claim decides", d.Lease.Number, d.ID)
}

// Learn are the steps of a message once the holder of its lease has told his: those that
// were known, in their order, then the new ones. Steps only grow, up to [nixie.MaxSteps]
// over all deliveries: one more would be forgotten, and then done twice.
func Learn(known []string, d *nixie.Delivery) ([]string, error) {
	steps := known
	for _, step := range d.Steps {
		if !slices.Contains(steps, step) {
			steps = append(steps, step)
		}
	}
	if len(steps) > nixie.MaxSteps {
		return known, nixie.Errorf(nixie.CodeLimit, "message has %d steps, the limit is %d: use fewer, larger steps", len(steps), nixie.MaxSteps)
	}
	return steps, nil
}
