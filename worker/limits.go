package worker

import (
	"maps"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
)

// limits takes from the handler what its routes say: their timeouts, and a case of the policy for
// each type with attempts or a backoff of its own. Then it wraps the handler.
func (c *Config) limits() ([]policy.Case, error) {
	var cases []policy.Case
	if h, ok := c.Handler.(nixie.Limited); ok {
		limits := h.Limits()
		for _, name := range slices.Sorted(maps.Keys(limits)) {
			l := limits[name]
			if l.Timeout != 0 {
				if c.timeouts == nil {
					c.timeouts = map[string]time.Duration{}
				}
				c.timeouts[name] = l.Timeout
			}
			if l.Attempts == 0 && l.Backoff == "" {
				continue
			}
			if c.Decider != nil {
				return nil, nixie.Errorf(nixie.CodeInvalid,
					"the route for type %s has attempts or a backoff, and the worker a Decider: leave one out", name)
			}
			own := policy.Case{Type: name, Config: policy.Config{MaxAttempts: l.Attempts}}
			if l.Backoff != "" {
				var err error
				if own.Config.Backoff, err = policy.ParseBackoff(l.Backoff); err != nil {
					return nil, nixie.Errorf(nixie.CodeInvalid, "backoff of the route for type %s: %w", name, err)
				}
			}
			cases = append(cases, own)
		}
	}
	for _, wrap := range slices.Backward(c.Use) {
		c.Handler = wrap(c.Handler)
	}
	return cases, nil
}

// timeoutOf returns the time of one attempt of a message type; 0 or below is no limit.
func (c *Config) timeoutOf(messageType string) time.Duration {
	if t, ok := c.timeouts[messageType]; ok {
		return t
	}
	return c.Timeout
}

// shortestTimeout returns the shortest time of an attempt of any type; 0 is no limit.
func (c *Config) shortestTimeout() time.Duration {
	shortest := max(c.Timeout, 0)
	for _, t := range c.timeouts {
		if t > 0 && (shortest == 0 || t < shortest) {
			shortest = t
		}
	}
	return shortest
}
