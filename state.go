package nixie

// State is where a message is. Scheduled and waiting for a retry are queued:
// the difference is NotBefore. Blocked is derived from the stream.
type State string

// The states of a message.
const (
	Queued    State = "queued"
	Leased    State = "leased"
	Succeeded State = "succeeded"
	Discarded State = "discarded"
	Canceled  State = "canceled"
	Dead      State = "dead" // its letter has the rest of the story
)

// States lists every state once.
func States() []State { return []State{Queued, Leased, Succeeded, Discarded, Canceled, Dead} }
