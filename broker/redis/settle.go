package redis

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/lease"
)

// Ack removes records.
func (d *Driver) Ack(ctx context.Context, records []*broker.Record) []error {
	return d.each(ctx, "ack", records, 0, nil)
}

// Nack gives records back.
func (d *Driver) Nack(ctx context.Context, list []broker.Return) []error {
	records := make([]*broker.Record, len(list))
	for n := range list {
		records[n] = list[n].Record
	}
	return d.each(ctx, "nack", records, 2, func(args []any, n int) []any {
		return append(args, milliseconds(list[n].Delay), strconv.Itoa(int(list[n].As))+" "+lease.PatienceText(list[n].Patience))
	})
}

// Extend renews leases. A lease of 0 only asks.
func (d *Driver) Extend(ctx context.Context, records []*broker.Record, lease time.Duration) []error {
	return d.each(ctx, "extend", records, 0, nil, milliseconds(lease))
}

// each runs a verb on records, in calls of at most mostRecords. More adds arguments of its own for
// each record.
func (d *Driver) each(ctx context.Context, verb string, records []*broker.Record, room int, more func(args []any, n int) []any,
	first ...any) []error {
	what := d.mailbox.act(verb + " in")
	if d.isClosed() {
		return repeated(closedError(), len(records))
	}
	errs := make([]error, len(records))
	for begin := 0; begin < len(records); begin += mostRecords {
		end := min(begin+mostRecords, len(records))
		args := append(make([]any, 0, len(first)+(2+room)*(end-begin)), first...)
		for n := begin; n < end; n++ {
			args = append(args, records[n].MessageID, string(records[n].Receipt.(receipt)))
			if more != nil {
				args = more(args, n)
			}
		}
		held, err := d.mailbox.keys.text(ctx, d.client, verb, args...)
		switch {
		case err != nil && strings.HasPrefix(err.Error(), "NOMAILBOX"):
			held = strings.Repeat("0", end-begin) // the records are gone with their mailbox
		case err != nil:
			copy(errs[begin:end], repeated(explain(what, err), end-begin))
		case len(held) != end-begin:
			copy(errs[begin:end], repeated(strangeAnswer(what), end-begin))
		}
		for n := begin; n < end && errs[n] == nil; n++ {
			if held[n-begin] != '1' {
				errs[n] = nixie.Errorf(nixie.CodeLeaseLost, "record %s of mailbox %s is not in this hand any more", records[n].MessageID,
					d.mailbox.name)
			}
		}
	}
	return errs
}

// repeated returns one error for n records.
func repeated(err error, n int) []error {
	errs := make([]error, n)
	for i := range errs {
		errs[i] = err
	}
	return errs
}
