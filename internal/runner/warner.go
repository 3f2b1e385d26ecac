package runner

import (
	"context"
	"log/slog"
	"slices"
	"strings"
)

// warner shows a person those errors of the worker's log that the run does not tell otherwise, in
// one line each.
type warner struct {
	warn func(format string, args ...any)
}

// Enabled implements [slog.Handler].
func (w warner) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelError }

// Handle implements [slog.Handler].
func (w warner) Handle(_ context.Context, record slog.Record) error {
	words := []string{record.Message}
	told := false
	record.Attrs(func(a slog.Attr) bool {
		switch value := a.Value.String(); a.Key {
		case "state":
			told = slices.Contains(toldElsewhere, value)
		case "id", "error", "stalled":
			words = append(words, value)
		}
		return true
	})
	if !told {
		w.warn("%s", strings.Join(words, ": "))
	}
	return nil
}

// WithAttrs implements [slog.Handler].
func (w warner) WithAttrs([]slog.Attr) slog.Handler { return w }

// WithGroup implements [slog.Handler].
func (w warner) WithGroup(string) slog.Handler { return w }
