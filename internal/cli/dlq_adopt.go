package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/internal/letterfile"
)

// adopting is dlq adopt.
type adopting struct {
	importing
	channel app.Channel
	read    []broker.Record
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

It reads the topic from its beginning to where it ends now, and takes nothing away
from it. A record that is in the office already, by its letter or by its place, is
left as it is, so the command can be run again, and after a stop anywhere.

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
	fs.BoolVar(&a.dry, "dry-run", false, "read and check everything, and change nothing")
	return cmd
}

// brokerHelp says how brokers are named.
const brokerHelp = `A broker is named kafka://[USER[:PASSWORD]@]HOST[:PORT][,HOST…][/TOPIC], with the
parameters sasl=plain|scram-sha-256|scram-sha-512, tls=true, ca=, cert= and key= (files),
client_id=. User and password may be in NIXIE_KAFKA_USER and NIXIE_KAFKA_PASSWORD
instead.`

func (a *adopting) run(ctx context.Context, url string) (err error) {
	if a.channel, err = a.broker(url); err != nil {
		return err
	}
	if a.reason == "" {
		a.reason = "adopted from " + a.channel.Shown
	}
	a.report = importReport{DryRun: a.dry, Errors: []string{}}
	from, err := a.channel.Read(ctx, "")
	if err != nil {
		return err
	}
	defer from.Close()
	return a.end(ctx, a.takeIn(ctx, func() (letterfile.Record, error) { return a.next(ctx, from) }))
}

// next makes a letter of the next record.
func (a *adopting) next(ctx context.Context, from broker.Reader) (letterfile.Record, error) {
	if len(a.read) == 0 {
		var err error
		if a.read, err = from.Next(ctx, importBatch); err != nil {
			return letterfile.Record{}, err
		}
		if len(a.read) == 0 {
			return letterfile.Record{}, io.EOF
		}
	}
	r := &a.read[0]
	a.read = a.read[1:]
	return letterfile.Record{
		Letter: broker.Adopted(a.channel.System, r, a.queue),
		Place:  fmt.Sprintf("topic %s, partition %d, offset %d", r.Channel, r.Partition, r.Offset),
	}, nil
}
