package lease

import (
	"sync/atomic"

	"github.com/nixie-go/nixie"
)

// Watcher watches over the lease of a delivery. A worker or a broker implements it.
type Watcher interface {
	// Lost returns a channel that is closed when the lease is no longer the holder's.
	Lost() <-chan struct{}
}

// StepKeeper is a [Watcher] that saves finished steps while the handler runs, when it renews
// the lease. [nixie.Delivery.Step] calls it after each step. It must not change the slice.
type StepKeeper interface{ KeepSteps(steps []string) }

// Watch sets the watcher of a delivery. A worker calls it before it starts the handler.
func Watch(d *nixie.Delivery, w Watcher) { d.Tracking.Watcher = w }

// Ready notes which steps the store has already. A store or broker calls it when it has filled
// the delivery.
func Ready(d *nixie.Delivery) { d.Tracking.SavedSteps = len(d.Steps) }

// NewSteps returns the steps that were done since the delivery was received.
func NewSteps(d *nixie.Delivery) []string { return d.Steps[min(d.Tracking.SavedSteps, len(d.Steps)):] }

// MarkCompleted notes that a transaction of the handler has completed the message. A store
// calls it when the transaction has committed, or before if it cannot tell.
func MarkCompleted(d *nixie.Delivery) { atomic.StoreUint32(&d.Tracking.Completed, 1) }

// Intact reports whether the body still has the hash that was taken at acceptance. It hashes a
// body once: the store asks first, and then the worker.
func Intact(d *nixie.Delivery) bool {
	d.Tracking.Intact = d.Tracking.Intact || nixie.HashBody(d.Body) == d.Hash
	return d.Tracking.Intact
}

// Renewal returns a copy of a delivery with the given steps and without body and headers. A
// worker gives it to [nixie.Source.Extend] while the handler uses the delivery itself.
func Renewal(d *nixie.Delivery, steps []string) *nixie.Delivery {
	return &nixie.Delivery{
		Message: nixie.Message{
			ID: d.ID, Queue: d.Queue, Type: d.Type, Key: d.Key, Stream: d.Stream, Origin: d.Origin, Steps: steps,
			Attempts: d.Attempts, Deliveries: d.Deliveries, Crashes: d.Crashes, Generation: d.Generation, Redrives: d.Redrives,
		},
		Lease:     d.Lease,
		Abandoned: d.Abandoned,
		Tracking:  nixie.Tracking{SavedSteps: d.Tracking.SavedSteps},
	}
}
