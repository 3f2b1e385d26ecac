package nixie

// State says what becomes of a message. A message that is scheduled or waits for a retry is queued:
// its NotBefore tells. Whether it is blocked follows from its stream.
type State string

// The states of a message.
const (
	Queued    State = "queued"
	Leased    State = "leased"
	Succeeded State = "succeeded"
	Discarded State = "discarded"
	Canceled  State = "canceled"
	Dead      State = "dead" // it has a letter
)

// States lists every state once.
func States() []State { return []State{Queued, Leased, Succeeded, Discarded, Canceled, Dead} }
