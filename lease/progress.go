package lease

import "github.com/nixie-go/nixie"

// Progress says how far the holder of a delivery is with it.
type Progress byte

// The progress of a delivery. It decides what the store does with the message when a lease ends
// without a settlement, because time is over or the holder's process died.
const (
	Waiting   Progress = 1 + iota // received, not begun: queued again as if released
	Begun                         // may have had any effect: abandoned, as without any progress
	Succeeded                     // the handler succeeded without new steps: settled as a success
)

// ProgressLog is an optional ability of a store: it writes down how far this process is with its
// deliveries, for much less than a commit costs. The log outlives the process, however the process
// ends. A power loss may take it, but never makes a delivery that was begun look as if it waited.
type ProgressLog interface {
	// LogProgress writes the progress of deliveries. A claim with [nixie.Want.LogProgress] writes
	// Waiting itself. After an error the progress may or may not be written.
	LogProgress(progress Progress, deliveries ...*nixie.Delivery) error
}
