package telemetry

import (
	"context"
	"encoding/hex"
	"log/slog"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
)

// maxLogged bounds a text of a record, in bytes.
const maxLogged = 500

// Logs returns an observer that writes a record for each event that a person may look for:
//
//	error  the source failed, or answers no longer
//	warn   a death, a lost lease, an outcome that came too late, a handler past its timeout, an open breaker
//	info   a letter that was moved, a notice of a death that was handled, a source that answers,
//	       a breaker that is half-open or closed
//	debug  every other outcome
//
// Records have no bodies and keys, and texts are cut at 500 bytes. The worker masks the texts of
// failures before. The handler of the logger must not block.
//
// The log of a worker has deaths, lost leases and failing sources too: a program that uses Logs
// sets Logger of the worker to [slog.DiscardHandler].
func Logs(to *slog.Logger) *nixie.Observer { return logs{to, time.Now}.observer() }

type logs struct {
	to    *slog.Logger
	clock func() time.Time
}

func (l logs) observer() *nixie.Observer {
	return &nixie.Observer{
		Settled: l.settled,
		Lost: func(d *nixie.Delivery) {
			l.write(slog.LevelWarn, "Lease lost", about(d.Queue, &d.Message)...)
		},
		Late: func(d *nixie.Delivery, after time.Duration) {
			l.write(slog.LevelWarn, "Handler past its timeout", append(about(d.Queue, &d.Message), slog.Duration("timeout", after))...)
		},
		Moved:   l.moved,
		Noticed: l.noticed,
		Trouble: func(queue string, err error) {
			l.write(slog.LevelError, "Source failed", slog.String("queue", queue), slog.String("code", string(nixie.CodeOf(err))),
				slog.String("error", cut(err.Error())))
		},
		Connected: func(queue string, up bool) {
			if up {
				l.write(slog.LevelInfo, "Source answers", slog.String("queue", queue))
			} else {
				l.write(slog.LevelError, "Source answers no longer", slog.String("queue", queue))
			}
		},
		Breaker: l.breaker,
	}
}

func (l logs) write(level slog.Level, message string, attrs ...slog.Attr) {
	l.to.LogAttrs(context.Background(), level, message, attrs...)
}

func (l logs) has(level slog.Level) bool { return l.to.Enabled(context.Background(), level) }

func (l logs) settled(source string, sts []nixie.Settlement, errs []error) {
	warn, debug := l.has(slog.LevelWarn), l.has(slog.LevelDebug)
	for i := range sts {
		switch st := &sts[i]; {
		case errs[i] == nil && st.Burial != nil && warn:
			l.death(source, st)
		case errs[i] == nil && st.Burial == nil && debug:
			l.write(slog.LevelDebug, "Message settled", append(about(source, &st.Delivery.Message),
				slog.String("verb", string(st.Verb)), slog.Int("attempts", st.Delivery.Attempts), slog.Duration("took", st.Took))...)
		case nixie.CodeOf(errs[i]) == nixie.CodeLeaseLost && warn:
			l.write(slog.LevelWarn, "Outcome too late", append(about(source, &st.Delivery.Message),
				slog.String("verb", string(st.Verb)))...)
		}
	}
}

func (l logs) death(source string, st *nixie.Settlement) {
	d := st.Delivery
	if o := d.Origin; o != nil {
		source = o.System + "/" + o.Channel
	}
	attrs := append(about(d.Queue, &d.Message), slog.String("source", cut(source)), slog.Int("delivery_count", d.Deliveries),
		slog.String("cause", string(st.Burial.Cause)), slog.String("fingerprint", cut(st.Burial.Fingerprint)))
	if f := st.Failure; f != nil {
		attrs = append(attrs, slog.String("error_type", cut(f.Type)), slog.String("reason", cut(string(f.Reason))),
			slog.String("error", cut(f.Text)))
	}
	l.write(slog.LevelWarn, "Message dead-lettered", attrs...)
}

func (l logs) moved(moves []nixie.LetterMove) {
	if !l.has(slog.LevelInfo) {
		return
	}
	for i := range moves {
		move := &moves[i]
		if move.Err != nil {
			continue
		}
		attrs := append(about(move.Letter.Message.Queue, &move.Letter.Message), slog.String("letter_id", move.Letter.ID.String()),
			slog.String("action", move.Event), slog.String("actor", cut(move.Actor)))
		if died := move.Letter.DiedAt; !died.IsZero() {
			attrs = append(attrs, slog.Float64("age_seconds", age(l.clock(), died)))
		}
		l.write(slog.LevelInfo, "Processing dead letter", attrs...)
	}
}

// noticed tells what a consumer did with a notice. A letter that its handler replayed is told of by
// moved too, if the store of the engine is observed.
func (l logs) noticed(n nixie.NoticeHandled) {
	attrs := []slog.Attr{slog.String("queue", cut(n.Queue)), slog.String("message_id", n.Message.String())}
	for _, text := range []struct{ name, value string }{
		{"request_id", n.RequestID}, {"trace_id", n.TraceID}, {"error_type", n.ErrorType},
	} {
		if text.value != "" {
			attrs = append(attrs, slog.String(text.name, cut(text.value)))
		}
	}
	attrs = append(attrs, slog.Float64("age_seconds", max(n.Age.Seconds(), 0)), slog.String("action", n.Action),
		slog.Duration("took", n.Took))
	l.write(slog.LevelInfo, "Processing dead letter", attrs...)
}

func (l logs) breaker(c nixie.BreakerChange) {
	level := slog.LevelInfo
	if c.State == breakerStates[0] {
		level = slog.LevelWarn
	}
	l.write(level, "Circuit breaker", slog.String("queue", c.Queue), slog.String("type", c.Type),
		slog.String("reason", string(c.Reason)), slog.String("state", c.State))
}

// about returns the attributes of a message. Without a queue of its own it gets that of the source.
func about(queue string, m *nixie.Message) []slog.Attr {
	if m.Queue != "" {
		queue = m.Queue
	}
	attrs := append(make([]slog.Attr, 0, 14), slog.String("queue", cut(queue)), slog.String("message_id", m.ID.String()))
	if m.Type != "" {
		attrs = append(attrs, slog.String("type", cut(m.Type)))
	}
	if id := m.Header(nixie.HeaderRequestID); id != "" {
		attrs = append(attrs, slog.String("request_id", cut(id)))
	}
	if id := traceID(m.Header(nixie.HeaderTraceParent)); id != "" {
		attrs = append(attrs, slog.String("trace_id", id))
	}
	return attrs
}

// traceID returns the trace of a traceparent, or "".
func traceID(parent string) string {
	parts := strings.SplitN(parent, "-", 4)
	if len(parts) < 4 || len(parts[1]) != 32 || strings.Trim(parts[1], "0") == "" {
		return ""
	}
	if _, err := hex.DecodeString(parts[1]); err != nil {
		return ""
	}
	return parts[1]
}

// cut returns at most maxLogged bytes of a text, with a mark.
func cut(s string) string {
	if len(s) <= maxLogged {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	return strings.ToValidUTF8(s[:maxLogged], "") + "…"
}
