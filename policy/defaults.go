package policy

import (
	"time"

	"github.com/nixie-go/nixie"
)

// Defaults of the profile nixie, and bounds of what a [Config] may ask for.
// [Policy.Table] prints them as they apply.
const (
	DefaultMaxAttempts = 5 // executions in one generation, the first included
	DefaultMaxCrashes  = 3 // holders that vanish in a row

	DefaultMinAge      = 15 * time.Minute // between the first failure of a generation and the last, where time may heal
	AwaitedMinAge      = 2 * time.Minute  // the same where a person waits for the end
	DefaultMaxRedrives = 3

	// MinSpacing is the shortest wait before a retry or after a release, so that a failure in a
	// loop does not spin. Only a backoff with base −1 waits less.
	MinSpacing = 10 * time.Millisecond

	MaxCount   = 1_000_000_000 // highest max_attempts, max_deliveries and max_redrives
	MaxFactor  = 1_000         // highest factor of a backoff
	MaxDelays  = 1_000         // most entries of a list of delays
	MaxCases   = 200           // most cases of a config
	MaxInClaim = 1_000         // most runs of an attempt in one claim

	// MaxBudgeted is the highest max_attempts with a retry_budget: at each failure the policy
	// computes all earlier waits again.
	MaxBudgeted = 10_000

	lateAttempts         = 8  // most attempts after max_attempts, until min_age is over
	deliveriesPerAttempt = 3  // max_deliveries when not set: this many per attempt,
	deliveriesSpare      = 10 // and this many more
	claimsOfCrash        = 2  // the one that vanished, and the one that judged it
	sharedCrashes        = 16 // more than halve [nixie.MaxBatch] to one, twice alone included
)

// Bounds of the record of a failure, in addition to those of package nixie.
const (
	maxAttachments = 16      // of one failure
	maxContextLine = 1 << 10 // bytes of one line of the context
	maxChain       = 1_000   // errors of one chain that the policy examines

	// MaxLabel limits the bytes of the label of a signature.
	MaxLabel = 200

	signatureWords  = 12 // words of the text that count
	signatureWord   = 64 // bytes of one of them that count
	signatureFrames = 3  // functions of the stack that count
)

// defaultDeliveries returns max_deliveries for a config that does not set it.
func defaultDeliveries(maxAttempts int) int {
	if maxAttempts == none {
		return none
	}
	return deliveriesPerAttempt*maxAttempts + deliveriesSpare
}

func defaultBackoff() Backoff {
	return Backoff{
		Formula: Exponential, Base: time.Second, Factor: 2, Cap: 15 * time.Minute,
		Jitter: JitterEqual, Fraction: 0.3,
	}
}

// limits are the rows of the table that no config changes.
func limits() []Row {
	return []Row{
		{"min_spacing", short(MinSpacing), "shortest wait before a retry"},
		{"lease", short(nixie.DefaultLease), "how long a claim lasts, unless the queue says otherwise"},
		{"heartbeat", short(nixie.Heartbeat), "how often a claim is renewed"},
		{"max_delay", short(nixie.MaxDelay), "longest wait that can be asked for"},
		{"history", count(nixie.MaxHistory), "failures kept of a message; the first and the newest stay"},
		{"failure_text", count(nixie.MaxFailureText), "bytes kept of the text of a failure"},
		{"failure_stack", count(nixie.MaxStack), "bytes kept of its stack"},
		{"failure_context", count(nixie.MaxContext), "lines kept of its context"},
		{"attachment", count(nixie.MaxAttachment), "bytes kept of one attachment"},
		{"attachments", count(maxAttachments), "attachments kept of one failure"},
	}
}
