package telemetry

import (
	"sync"

	"go.opentelemetry.io/otel/trace"

	"github.com/nixie-go/nixie"
)

// maxRemembered bounds the keys of a recent.
const maxRemembered = 10_000

// recent remembers the last value of many keys. Beyond the limit it forgets another one, whichever
// it finds first.
type recent[K comparable, V any] struct {
	mu   sync.Mutex
	last map[K]V
}

// of returns the value of a key, and whether it has one.
func (m *recent[K, V]) of(key K) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, known := m.last[key]
	return v, known
}

func (m *recent[K, V]) add(key K, v V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last == nil {
		m.last = map[K]V{}
	}
	if _, known := m.last[key]; !known && len(m.last) >= maxRemembered {
		for old := range m.last {
			delete(m.last, old)
			break
		}
	}
	m.last[key] = v
}

// attempt is a recorded attempt that failed. A message does not say in which trace its last one
// was.
type attempt struct {
	span             trace.SpanContext
	number, redrives int
}

// death names one death of a message: it is redriven at most once.
type death struct {
	message    nixie.ID
	generation int
}
