package nixie

import (
	"context"
	"fmt"
	"time"
)

// Route is a message type with its handler, or an option of [Routes].
type Route struct {
	Type    string
	Handler Handler
	Limits  Limits

	unknown *time.Duration
}

// Limits bounds the work on messages of one type. A zero field does not. What the
// policy of a queue, or of the worker, says of the same type goes before Attempts and Backoff.
type Limits struct {
	Timeout  time.Duration // of one attempt, instead of that of the worker; −1 is none
	Attempts int           // executions in one generation, the first included; −1 is no limit
	Backoff  string        // as a policy has it, such as "exponential base=1s cap=5m"
}

// Limited is a [Handler] that knows limits by [Message].Type, as that of [Routes] does. A worker
// keeps to them.
type Limited interface {
	Handler
	Limits() map[string]Limits
}

// RouteOption sets a limit of a route.
type RouteOption func(*Limits)

// Timeout ends an attempt of the type after d, instead of the worker's timeout; −1 is none.
func Timeout(d time.Duration) RouteOption { return func(l *Limits) { l.Timeout = d } }

// Attempts gives the type up after n executions in one generation, the first included; −1 is no
// limit.
func Attempts(n int) RouteOption { return func(l *Limits) { l.Attempts = n } }

// Backoff computes the waits between attempts of the type, as docs/policy.md writes it, such as
// "linear base=1m". The worker refuses a text that is none when it is made.
func Backoff(text string) RouteOption { return func(l *Limits) { l.Backoff = text } }

// DefaultUnknownTypes is the time of [UnknownTypes].
const DefaultUnknownTypes = 15 * time.Minute

// UnknownTypes is an option of [Routes]: how long a message of a type without a route is left to
// other workers, from the first one that refused it in this generation. The default is
// [DefaultUnknownTypes]; with 0 it dies at once. A time below 0 is refused.
func UnknownTypes(within time.Duration) Route { return Route{unknown: &within} }

// Routes makes one handler that chooses a route by Message.Type. In a rolling deploy a worker meets
// types that only newer ones know. It releases a message of another type, which costs nothing, and
// after 1 s up to 30 s the next worker looks at it. When [UnknownTypes] is over the message dies,
// with the reason unknown-type. What [CheckedRoutes] refuses is a mistake in the program: Routes
// panics.
func Routes(routes ...Route) Handler {
	h, err := CheckedRoutes(routes...)
	if err != nil {
		panic("nixie: " + err.Error())
	}
	return h
}

// CheckedRoutes is [Routes] for routes that are only known when the program runs, as of plugins. It
// refuses two routes of one type, a route without a handler and limits that are none, with
// [CodeInvalid].
func CheckedRoutes(routes ...Route) (Handler, error) {
	t := routeTable{handlers: make(map[string]Handler, len(routes)), limits: map[string]Limits{}, within: DefaultUnknownTypes}
	for _, r := range routes {
		if err := t.add(r); err != nil {
			return nil, err
		}
	}
	return &t, nil
}

// routeTable is the handler of [Routes].
type routeTable struct {
	handlers map[string]Handler
	limits   map[string]Limits
	within   time.Duration
}

func (t *routeTable) add(r Route) error {
	l := r.Limits
	switch {
	case r.unknown != nil && *r.unknown < 0:
		return Errorf(CodeInvalid, "unknown types within %s: give 0 for none, or a positive time", *r.unknown)
	case r.unknown != nil:
		t.within = *r.unknown
		return nil
	case t.handlers[r.Type] != nil:
		return Errorf(CodeInvalid, "two routes for type %s: leave one out", r.Type)
	case r.Handler == nil:
		return Errorf(CodeInvalid, "route for type %s has no handler: set Handler", r.Type)
	case l.Timeout < 0 && l.Timeout != -1:
		return Errorf(CodeInvalid, "timeout of type %s is %s: give a positive one, or −1 for none", r.Type, l.Timeout)
	case l.Attempts < -1:
		return Errorf(CodeInvalid, "attempts of type %s are %d: give a positive number, or −1 for no limit", r.Type, l.Attempts)
	}
	t.handlers[r.Type] = r.Handler
	if l != (Limits{}) {
		t.limits[r.Type] = l
	}
	return nil
}

// Limits implements [Limited].
func (t *routeTable) Limits() map[string]Limits { return t.limits }

// Handle implements [Handler].
func (t *routeTable) Handle(ctx context.Context, d *Delivery) error {
	h := t.handlers[d.Type]
	if h == nil {
		return &Outcome{Verb: Release, Reason: ReasonUnknownType, Within: t.within,
			Err: fmt.Errorf("no route for messages of type %q", d.Type)}
	}
	return h.Handle(ctx, d)
}

// Through returns an [Enqueuer] that changes or refuses each message before it is enqueued, in
// this order: it adds a header to all, say. An error of one refuses the whole call.
func Through(to Enqueuer, before ...func(context.Context, *Message) error) Enqueuer {
	return enqueueFunc(func(ctx context.Context, messages ...Message) ([]Receipt, error) {
		own := make([]Message, len(messages))
		copy(own, messages)
		for i := range own {
			for _, change := range before {
				if err := change(ctx, &own[i]); err != nil {
					return nil, err
				}
			}
		}
		return to.Enqueue(ctx, own...)
	})
}

// enqueueFunc makes a function an [Enqueuer].
type enqueueFunc func(ctx context.Context, messages ...Message) ([]Receipt, error)

// Enqueue implements [Enqueuer].
func (f enqueueFunc) Enqueue(ctx context.Context, messages ...Message) ([]Receipt, error) {
	return f(ctx, messages...)
}
