package nixie

import "time"

// Patience has what policy counts of a message in its present generation besides attempts and
// crashes. A redrive begins it anew, and it ends with the message. Stores and brokers keep it, and
// only policy reads it.
type Patience struct {
	FailingSince time.Time `json:"failing_since,omitzero"` // its first failure, by the clock of the store
	RefusedSince time.Time `json:"refused_since,omitzero"` // first given back by a worker that does not know its type
	Free         int       `json:"free,omitempty"`         // claims that cost nothing: max_deliveries does not count them
	Tries        int       `json:"tries,omitempty"`        // failed tries of an open breaker
	Stops        int       `json:"stops,omitempty"`        // holders that vanished after they were told to stop, with no answer since
	StoppedBy    string    `json:"stopped_by,omitempty"`   // the last of these holders: its commands may still run
}

// Waiver says why a settlement costs the message neither an attempt nor a delivery.
type Waiver string

// The waivers.
const (
	NoWaiver      Waiver = ""             // it costs what its verb costs
	WaiveSnooze   Waiver = "snooze"       // of a release: the handler asked for a later time
	WaiveTry      Waiver = "try"          // of a retry: it tried an open breaker
	WaiveUnknown  Waiver = "unknown-type" // of a release: the worker has no handler for the type
	WaiveUntried  Waiver = "untried"      // of a release: an open breaker gave it back
	WaiveStopping Waiver = "stopping"     // of a release: the holder was told to stop
)

// Trial says which failures of a delivery cost the message neither an attempt nor a delivery,
// because it tries an open circuit breaker.
type Trial string

// The trials.
const (
	NoTrial      Trial = ""        // none
	TrialHealing Trial = "healing" // those that time may heal
	TrialAny     Trial = "any"     // all: nothing has succeeded yet
)
