package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/internal/letterfile"
)

// adopting is dlq adopt.
type adopting struct {
	importing
	channel app.Channel
	group   string
	again   bool
}

func newDLQAdopt(g *globals) *cobra.Command {
	a := &adopting{importing: importing{globals: g}}
	cmd := &cobra.Command{
		Use:   "adopt kafka://HOST/TOPIC",
		Short: "Take in letters from a topic of a broker",
		Long: `Takes the records of a dead letter topic into the office, whoever put them there:
Nixie, Spring Kafka, Kafka Connect, Kafka Streams, share groups, Watermill,
MassTransit, Wolverine, or a program that writes x-original-topic and the like. Their
headers say why and when each one died, and in which topic, partition and offset; a
topic named orders.dlq, orders.DLQ, orders-dlq or orders-dlt says where at least.

It reads the topic to where it ends now, and takes nothing away from it. What it has
taken in it remembers under --group, record by record, so the command can be run again
for what was added since, and after a stop anywhere; what was refused comes again. A
letter that was purged does not come back. With --again it reads everything, and what is
in the office already, by its letter or by its place, is left as it is. A second office
needs a group of its own.

A topic of retries is not for it: what waits there is tried again, and is dead only
when it comes to the topic of the letters.

Headers beyond 64 KiB and values beyond 16 MiB stay where they are: the letter says how
much is missing, and its record can be redriven with --from only.

A letter goes to the queue that is named like the topic where it died, else --queue
says where. nixie dlq redrive --to kafka://HOST sends it back to that topic.

--dry-run reads everything and looks every letter up.

` + brokerHelp + `

Exit codes: 0 all are here now, 5 some were refused.`,
		Example: `  nixie dlq adopt kafka://localhost:9092/orders.dlq --dry-run
  nixie dlq adopt 'kafka://ann@broker:9093/orders-dlt?tls=true&sasl=scram-sha-256'`,
		Args: oneArg("broker URL"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.run(cmd.Context(), args[0]) },
	}
	fs := cmd.Flags()
	fs.StringVar(&a.queue, "queue", "", "queue of all letters (default the topic where each one died)")
	fs.StringVar(&a.reason, "reason", "", "why; recorded with every letter (default the name of the topic)")
	fs.StringVar(&a.group, "group", "", "consumer group that remembers what was taken in (default nixie-adopt.TOPIC)")
	fs.BoolVar(&a.again, "again", false, "read all of the topic, also what was taken in before")
	fs.BoolVar(&a.dry, "dry-run", false, "read and check everything, and change nothing")
	return cmd
}

// brokerHelp says how brokers are named.
const brokerHelp = `A broker is named kafka://[USER[:PASSWORD]@]HOST[:PORT][,HOST…][/TOPIC], with the
parameters sasl=plain|scram-sha-256|scram-sha-512, tls=true, ca=, cert= and key= (files),
client_id=. User and password may be in NIXIE_KAFKA_USER and NIXIE_KAFKA_PASSWORD
instead.`

func (a *adopting) run(ctx context.Context, url string) (err error) {
	if a.channel, err = a.channelAt(url); err != nil {
		return err
	}
	if a.reason == "" {
		a.reason = "adopted from " + a.channel.Shown
	}
	a.report = importReport{DryRun: a.dry, Errors: []string{}}
	if a.group == "" {
		a.group = "nixie-adopt." + a.channel.Name
	}
	name := a.group
	if a.again {
		name = ""
	}
	from, err := a.channel.Read(ctx, name)
	if err != nil {
		return err
	}
	defer from.Close()
	err = a.takeIn(ctx, func() error { return a.drainFrom(ctx, from) })
	if err == nil && a.report.Read == 0 && name != "" {
		a.say("nothing is new for group %s; --again reads all of the topic", name)
	}
	return a.end(ctx, err)
}

// drainFrom takes in what a reader has. What is in is remembered when it is.
func (a *adopting) drainFrom(ctx context.Context, from broker.Reader) error {
	for {
		records, err := from.Next(ctx, importBatch)
		if err != nil || len(records) == 0 {
			return err
		}
		asked, in := 0, make([]*broker.Record, 0, len(records))
		a.answered = func(ok bool) {
			if ok {
				in = append(in, &records[asked])
			}
			asked++
		}
		for i := range records {
			r := &records[i]
			if source, waits := broker.IsRetry(r); waits {
				return usagef("%s is a topic of retries of %s: its consumers try these records again, and those that die lie on the topic of its letters, such as %s-dlt; adopt that one, or send them back without an office: nixie dlq redrive --from URL",
					r.Channel, orDash(source), orDash(source))
			}
			err = errors.Join(err, a.add(ctx, letterfile.Record{
				Letter: broker.Adopted(a.channel.System, r, a.queue),
				Place:  fmt.Sprintf("topic %s, partition %d, offset %d", r.Channel, r.Partition, r.Offset),
			}))
			if err != nil {
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

// rememberLimit is how long noting what was taken in may take, also at an interrupt.
const rememberLimit = 30 * time.Second
