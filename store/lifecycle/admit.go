package lifecycle

import "github.com/nixie-go/nixie"

// Admits returns nil if the queue accepts new messages, and otherwise the error for the producer.
func Admits(q *nixie.QueueSettings, queue string) error {
	if !q.Closed {
		return nil
	}
	note := ""
	if q.ClosedNote != "" {
		note = " (" + q.ClosedNote + ")"
	}
	return nixie.Errorf(nixie.CodeConflict, "queue %s is closed to new messages%s: nixie queue resume opens it again", queue, note)
}
