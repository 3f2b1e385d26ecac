package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/internal/letterfile"
)

// adopting runs dlq adopt.
type adopting struct {
	importing
	channel app.Channel
	group   string
	again   bool
}

func newDLQAdopt(g *globals) *cobra.Command {
	a := &adopting{importing: importing{globals: g}}
	cmd := g.command(g.described("dlq adopt", oneArg("broker URL")),
		func(ctx context.Context, args []string) error { return a.run(ctx, args[0]) })
	fs := cmd.Flags()
	fs.StringVar(&a.queue, "queue", "", "queue of all letters (default the topic where each one died)")
	fs.StringVar(&a.reason, "reason", "", "why; recorded with every letter (default the name of the topic)")
	fs.StringVar(&a.group, "group", "", "consumer group that remembers what was taken in (default nixie-adopt.TOPIC)")
	fs.BoolVar(&a.again, "again", false, "read all of the topic, also what was taken in before")
	fs.BoolVar(&a.dry, "dry-run", false, "read and check everything, and change nothing")
	return cmd
}

func (a *adopting) run(ctx context.Context, url string) (err error) {
	if a.channel, err = a.channelAt(url); err != nil {
		return err
	}
	a.deaths = a.channel.Kind == app.JobQueue
	if a.reason == "" {
		a.reason = "adopted from " + a.channel.Shown
	}
	if !a.channel.Group && (a.group != "" || a.again) {
		return usagef("a %s has no groups, which remember what was taken in: leave --group and --again out", a.channel.Kind)
	}
	if a.dry && !a.channel.Gives(ctx) {
		return usagef("%s: leave --dry-run out", a.channel.Spends)
	}
	a.report = importReport{DryRun: a.dry, Errors: []string{}}
	if a.group == "" {
		a.group = "nixie-adopt." + a.channel.Name
	}
	name := a.group
	if a.again || !a.channel.Group {
		name = ""
	}
	open := a.channel.Adopt
	if a.dry {
		open = a.channel.Read
	}
	from, err := open(ctx, name)
	if err != nil {
		return err
	}
	defer from.Close()
	err = a.takeIn(ctx, func() error { return a.drainFrom(ctx, from) })
	switch {
	case err != nil || a.report.Read > 0 || a.again:
	case a.channel.Group:
		a.say("nothing is new for group %s; --again reads all of the topic", name)
	default:
		a.say("nothing lies there that could be taken in")
	}
	return a.end(ctx, err)
}

// drainFrom takes the records of a reader into the office. The reader remembers a record only after
// the office has it.
func (a *adopting) drainFrom(ctx context.Context, from broker.Reader) error {
	for {
		records, err := from.Next(ctx, importBatch)
		if err != nil || len(records) == 0 {
			return err
		}
		var given []*broker.Record // to the office, in this order
		in := make([]*broker.Record, 0, len(records))
		a.answered = func(ok bool) {
			r := given[0]
			given = given[1:]
			if ok {
				in = append(in, r)
				if r.Damage != "" || a.deaths && r.Offset < 0 { // it does not tell when it died
					a.report.Damaged++
				}
			}
		}
		for i := range records {
			r := &records[i]
			if err := refuseRetry(r); err != nil {
				return err
			}
			one := letterfile.Record{Letter: broker.Adopted(a.channel.System, r, a.queue), Position: a.position(r)}
			if a.channel.Takes && broker.FromLetter(&one.Letter).Cut {
				one.Err = nixie.Errorf(nixie.CodeLimit, "%s: it is too large for an office, which takes 16 MiB of a body and "+
					"64 KiB of headers: it stays there", one.Position)
			} else {
				given = append(given, r)
			}
			if err = a.add(ctx, one); err != nil {
				break
			}
		}
		if err == nil {
			err = a.flush(ctx)
		}
		if !a.dry {
			remember, cancel := context.WithTimeout(context.WithoutCancel(ctx), rememberLimit)
			err = errors.Join(err, from.Done(remember, in))
			cancel()
		}
		if err != nil {
			return err
		}
	}
}

// refuseRetry refuses a record that waits for its next attempt.
func refuseRetry(r *broker.Record) error {
	source, waits := broker.IsRetry(r)
	if !waits {
		return nil
	}
	return usagef("%s is a topic of retries of %s, whose consumers try these records again: adopt the topic of its letters, "+
		"such as %s-dlt; or send them back by nixie dlq redrive --from URL",
		r.Channel, orDash(source), orDash(source))
}

// position names a record in an error.
func (a *adopting) position(r *broker.Record) string {
	switch {
	case r.Partition < 0:
		return fmt.Sprintf("job %s in %s", r.MessageID, r.Channel)
	case r.Offset < 0:
		return fmt.Sprintf("%s %s, record %s", a.channel.Kind, r.Channel, r.MessageID)
	}
	return fmt.Sprintf("topic %s, partition %d, offset %d", r.Channel, r.Partition, r.Offset)
}

// rememberLimit bounds the call that remembers records that were taken in, also after an interrupt.
const rememberLimit = 30 * time.Second
