// Command channel is the sample of the Dead Letter Channel pattern on this library:
// a consumer with retries that puts what it cannot handle on <topic>.dlq, and a
// redriver.
//
//	go run ./examples/channel process kafka://localhost:9092/orders
//	go run ./examples/channel redrive kafka://localhost:9092/orders.dlq 100
//
// It keeps the numbers of the pattern: five attempts, 400 ms to 3.2 s apart, the
// reasons permanent_error, transient_max_retries and unknown_max_retries, and the
// headers x-original-topic and so on. What such a program has to get right besides is
// the library's: a record is committed when it is handled or its letter is
// confirmed, a retry holds up its key alone and never the poll, a redrive is done
// once however often it is run, and x-redrive-count goes along.
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

// handleBusiness is to be replaced by what is really done with a record. What the
// error says of itself is what decides: permanent, transient, or nothing.
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

// redriveAll sends letters back to where they died, at most so many (0: all).
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
