package telemetry

import (
	"sync"

	"go.opentelemetry.io/otel/trace"

	"github.com/nixie-go/nixie"
)

// maxAttempts bounds the attempts that are remembered.
const maxAttempts = 10_000

// attempt is a recorded attempt that failed.
type attempt struct {
	span             trace.SpanContext
	number, redrives int
}

// attempts remembers the last recorded attempt of messages that failed. The message itself does not
// say in which trace that was.
type attempts struct {
	mu   sync.Mutex
	last map[nixie.ID]attempt
}

func (a *attempts) of(id nixie.ID) attempt {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last[id]
}

// add remembers an attempt. Beyond the limit it forgets another one, whichever it finds first.
func (a *attempts) add(id nixie.ID, of attempt) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last == nil {
		a.last = map[nixie.ID]attempt{}
	}
	if _, known := a.last[id]; !known && len(a.last) >= maxAttempts {
		for old := range a.last {
			delete(a.last, old)
			break
		}
	}
	a.last[id] = of
}
