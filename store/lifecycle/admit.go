package lifecycle

import (
	"fmt"

	"github.com/nixie-go/nixie"
)

// Admits returns nil if the queue accepts new messages, and otherwise the error for the producer,
// which names the queue.
func Admits(q *nixie.QueueSettings, queue string) error {
	if !q.Closed {
		return nil
	}
	note := ""
	if q.ClosedNote != "" {
		note = " (" + q.ClosedNote + ")"
	}
	return &nixie.Error{Code: nixie.CodeConflict, Queue: queue,
		Text: fmt.Sprintf("queue %s is closed to new messages%s: nixie queue resume opens it again", queue, note)}
}
