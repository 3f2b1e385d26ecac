package brokertest

import (
	"context"
	"slices"
	"testing"

	"github.com/nixie-go/nixie/broker"
)

// LogReader reads a channel of a [Log].
type LogReader struct {
	log  *Log
	name string
	rest []broker.Record
}

// doneKey marks a record as done for readers of one name.
type doneKey struct {
	name string
	id   [16]byte
}

// Read implements [ReadableFixture].
func (l *Log) Read(t testing.TB, channel, name string) broker.Reader {
	return &LogReader{l, name, l.Records(t, channel)}
}

// Next implements [broker.Reader].
func (r *LogReader) Next(_ context.Context, most int) (out []broker.Record, _ error) {
	for len(r.rest) > 0 && len(out) < most {
		next := r.rest[0]
		r.rest = r.rest[1:]
		if _, done := r.log.done.Load(doneKey{r.name, next.ID}); r.name == "" || !done {
			out = append(out, next)
		}
	}
	return out, nil
}

// Done implements [broker.Reader].
func (r *LogReader) Done(_ context.Context, calls ...[]*broker.Record) error {
	for _, record := range slices.Concat(calls...) {
		r.log.done.Store(doneKey{r.name, record.ID}, true)
	}
	return nil
}

// Left implements [broker.Reader].
func (r *LogReader) Left() int64 { return int64(len(r.rest)) }

// Close implements [broker.Reader].
func (r *LogReader) Close() {}
