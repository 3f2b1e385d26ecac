package runner

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"
)

// A person sees each error of the worker's log as a line, except those that outage tells.
func TestWarner(t *testing.T) {
	var told []string
	log := slog.New(warner{func(format string, args ...any) { told = append(told, fmt.Sprintf(format, args...)) }}).With("queue",
		"q").WithGroup("g")
	log.Error("a lease was lost", "state", "lease", "id", "42", "type", "mail")
	log.Error("leases cannot be renewed", "state", "renew", "code", "unavailable", "error", "away")
	log.Error("nothing can be received", "state", "receive", "error", "away")
	log.Error("outcomes cannot be settled", "state", "settle", "error", "away")
	log.Warn("message died", "id", "42", "error", "boom")
	log.Info("leases hold again", "state", "lease")
	if want := []string{"a lease was lost: 42", "leases cannot be renewed: away"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}
