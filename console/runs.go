package console

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
)

// runs knows the operations that this console runs, and how those ended that it ran. It grows by
// one entry with each operation that an operator begins.
type runs struct {
	mu      sync.Mutex
	on      map[nixie.ID]*run
	changes int // of what is known
}

type run struct {
	going bool
	ended string // why it ended before its end; "" is no reason
}

// of returns what is known of an operation.
func (s *runs) of(id nixie.ID) run {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.on[id]; known != nil {
		return *known
	}
	return run{}
}

// set notes the state of an operation.
func (s *runs) set(id nixie.ID, state run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.on == nil {
		s.on = map[nixie.ID]*run{}
	}
	s.on[id] = &state
	s.changes++
}

// going reports whether an operation runs.
func (s *runs) going() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, known := range s.on {
		if known.going {
			return true
		}
	}
	return false
}

// version returns a number that differs when what is known does.
func (s *runs) version() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changes
}

// start runs an operation, unless it runs already, and returns the address of its page.
func (c *console) start(id nixie.ID, w *office.OperationRequest) string {
	if !c.runs.of(id).going {
		c.runs.set(id, run{going: true})
		c.Run(func(ctx context.Context) {
			_, err := c.office.Run(ctx, id, w)
			state := run{}
			if err != nil && !errors.Is(err, context.Canceled) {
				state.ended = err.Error()
			}
			c.runs.set(id, state)
		})
	}
	return c.link("operation/" + id.String())
}

// resume goes on with the letters of an operation that were not moved yet.
func (c *console) resume(r *http.Request) (string, error) {
	return c.goOn(r, c.office.Operation)
}

// repeat moves those letters of a redrive again that died again.
func (c *console) repeat(r *http.Request) (string, error) {
	return c.goOn(r, c.office.Repeat)
}

// goOn runs an operation that it gets from find.
func (c *console) goOn(r *http.Request, find func(context.Context, nixie.ID) (office.Operation, error)) (string, error) {
	id, err := nixie.ParseID(r.PathValue("id"))
	if err != nil {
		return "", err
	}
	w := &office.OperationRequest{}
	if w.Rate, err = perSecond(r.FormValue("rate")); err != nil {
		return "", err
	}
	op, err := c.office.Operation(r.Context(), id)
	switch {
	case err != nil:
		return "", err
	case op.Destination != "":
		return "", nixie.Errorf(nixie.CodeUnavailable,
			"this redrive goes to %s, which the console does not know: use nixie dlq redrive --resume", op.Destination)
	}
	if op, err = find(r.Context(), id); err != nil {
		return "", err
	}
	w.Event = op.Event
	return c.start(id, w), nil
}
