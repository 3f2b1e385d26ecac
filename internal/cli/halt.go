package cli

import (
	"time"

	"github.com/nixie-go/nixie/policy"
)

// defaultHalt is long enough for what starts anew.
const defaultHalt = 2 * time.Minute

// haltAfter reads --halt-after, which needs a breaker and work that ends by itself.
func (h *handling) haltAfter(breaker policy.BreakerRules) (time.Duration, error) {
	if breaker == (policy.BreakerRules{}) {
		profile, err := policy.ProfileNamed(*h.policy.one["profile"])
		if err != nil {
			return 0, err
		}
		breaker = profile.Breaker
	}
	given := h.halt > 0 && h.policy.given("halt-after")
	switch {
	case h.halt < 0:
		return 0, usagef("--halt-after is %s: give a positive duration, or 0 for never", h.halt)
	case given && h.endless != "":
		return 0, usagef("--halt-after is %s, and this does not end by itself: give %s too, or leave it out", h.halt, h.endless)
	case given && !breaker.On():
		return 0, usagef("--halt-after is %s, and there is no breaker that can open: give --breaker default, or leave it out", h.halt)
	case h.endless != "" || !breaker.On():
		return 0, nil
	}
	return h.halt, nil
}
