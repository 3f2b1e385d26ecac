package lifecycle

import (
	"slices"

	"github.com/nixie-go/nixie"
)

// Lost returns the error for a worker whose lease is over.
func Lost(d *nixie.Delivery) error {
	return nixie.Errorf(nixie.CodeLeaseLost, "lease %d of message %s is over: its outcome was not recorded, another claim decides",
		d.Lease.Number, d.ID)
}

// Learn joins the known steps of a message and the new ones of its holder, in this order. It
// refuses more than [nixie.MaxSteps] over all deliveries: a step that is not kept would run twice.
func Learn(known []string, d *nixie.Delivery) ([]string, error) {
	steps := known
	for _, step := range d.Steps {
		if !slices.Contains(steps, step) {
			steps = append(steps, step)
		}
	}
	if len(steps) > nixie.MaxSteps {
		return known, nixie.Errorf(nixie.CodeLimit, "message has %d steps, the limit is %d: use fewer, larger steps",
			len(steps), nixie.MaxSteps)
	}
	return steps, nil
}
