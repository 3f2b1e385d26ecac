// Command channel shows the Dead Letter Channel pattern on this library. A consumer with retries
// puts records that it cannot handle on <topic>.dlq, and a redriver sends them back.
//
//	go run ./examples/channel process kafka://localhost:9092/orders
//	go run ./examples/channel redrive kafka://localhost:9092/orders.dlq 100
//
// It keeps the numbers of the pattern: five attempts with delays of 400 ms to 3.2 s. It keeps the
// reasons permanent_error, transient_max_retries and unknown_max_retries, and headers such as
// x-original-topic. The library does the rest. It commits a record after the handler succeeded or
// the broker confirmed the letter. A retry delays its key alone and never the poll. A repeated
// redrive sends each letter once and counts it in x-redrive-count.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/broker/kafka"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/redrive"
	"github.com/nixie-go/nixie/worker"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "channel:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: channel process kafka://HOST/TOPIC | redrive kafka://HOST/TOPIC.dlq [MAX]")

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) < 2 {
		return errUsage
	}
	at, err := kafka.ParseURL(args[1])
	if err != nil {
		return err
	}
	switch args[0] {
	case "process":
		profile, err := policy.ProfileNamed("kafka-dlc")
		if err != nil {
			return err
		}
		return process(ctx, at, profile.Config, handleBusiness)
	case "redrive":
		most := 0
		if len(args) > 2 {
			if most, err = strconv.Atoi(args[2]); err != nil {
				return errUsage
			}
		}
		done, err := redriveAll(ctx, at, most)
		fmt.Fprintf(out, "%d redriven, %d put aside, %d skipped, about %d left\n", done.Redriven, done.Quarantined, done.Skipped, done.Left)
		return err
	}
	return errUsage
}

// handleBusiness stands for your handler. Its error decides about the record: permanent, transient,
// or unknown.
func handleBusiness(_ context.Context, d *nixie.Delivery) error {
	switch {
	case bytes.Contains(d.Body, []byte("bad-schema")):
		return nixie.WithReason(nixie.Permanent(errors.New("invalid schema")), nixie.ReasonValidation)
	case bytes.Contains(d.Body, []byte("flaky")) && d.Attempts < 3:
		return nixie.Transient(errors.New("upstream timeout"))
	case bytes.Contains(d.Body, []byte("down")):
		return nixie.Transient(errors.New("upstream is down"))
	}
	return nil
}

// process handles records of a topic until ctx ends.
func process(ctx context.Context, at kafka.Address, rules policy.Config, handle nixie.HandlerFunc) (err error) {
	client, err := at.Options()
	if err != nil {
		return err
	}
	driver, err := kafka.Open(kafka.Config{Seeds: at.Seeds, Group: at.Topic + "-processor", Topics: []string{at.Topic}, Client: client})
	if err != nil {
		return err
	}
	defer func() {
		leave, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		err = errors.Join(err, driver.Close(leave))
	}()
	source, err := broker.New(broker.Config{Driver: driver, Letters: broker.DefaultLetters})
	if err != nil {
		return err
	}
	found, err := source.Check(ctx, []string{at.Topic})
	if err == nil {
		err = broker.FirstRefused(found)
	}
	if err != nil {
		return err
	}
	decide, err := policy.New(rules)
	if err != nil {
		return err
	}
	w, err := worker.New(worker.Config{Source: source, Policy: decide, Handler: handle, Concurrency: 16})
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

// redriveAll sends at most that many letters back to their topic (0 means all).
func redriveAll(ctx context.Context, letters kafka.Address, most int) (done redrive.Moved, err error) {
	from, err := kafka.Read(ctx, letters, "dlq-redriver."+letters.Topic)
	if err != nil {
		return done, err
	}
	defer from.Close()
	to, err := kafka.Connect(letters)
	if err != nil {
		return done, err
	}
	defer to.Close()
	return redrive.Mover{
		From: from, Max: most, Rate: 50,
		Destination: redrive.Destination{To: to, MaxRedrives: 3, Quarantine: "{source}.quarantine"},
	}.Run(ctx)
}
