// Package office, for programs, offers everything that an operator can do. It lists letters,
// messages and queues, groups letters by cause, redrives or discards them, and checks the store.
// The command line prints its answers.
//
//	package main
//
//	import (
//		"context"
//		"errors"
//		"fmt"
//		"log"
//		"time"
//
//		"github.com/nixie-go/nixie"
//		"github.com/nixie-go/nixie/office"
//		"github.com/nixie-go/nixie/store"
//		"github.com/nixie-go/nixie/store/memory"
//		"github.com/nixie-go/nixie/worker"
//	)
//
//	// dies lets a message of the queue die, as a worker does.
//	func dies(ctx context.Context, st store.Store, queue string) error {
//		desk, err := worker.NewDesk(worker.Config{Source: store.NewSource(st, queue)})
//		if err != nil {
//			return err
//		}
//		deliveries, err := desk.Receive(ctx, nixie.Want{Max: 1})
//		for _, d := range deliveries {
//			_, failed := desk.Done(ctx, d, nixie.Permanent(errors.New("there is no customer 7")), time.Now())
//			err = errors.Join(err, failed)
//		}
//		return err
//	}
//
//	func main() {
//		ctx := context.Background()
//		st := memory.New(memory.Options{}) // or the store in which your letters are
//		_, err := st.Enqueue(ctx, nixie.Message{Queue: "billing", Key: "invoice-7"})
//		if err := errors.Join(err, dies(ctx, st, "billing")); err != nil {
//			log.Fatal(err)
//		}
//		clerk, err := office.New(office.Config{Store: st, Actor: "ann"})
//		if err != nil {
//			log.Fatal(err)
//		}
//		analysis, err := clerk.Analyze(ctx, nixie.Filter{}, store.ScanRecent)
//		if err != nil {
//			log.Fatal(err)
//		}
//		for _, g := range analysis.Groups {
//			fmt.Println(g.Count, g.Signature)
//		}
//		redrive := &office.OperationRequest{Event: store.OnRedrive, Reason: "the customer is there now", Force: true}
//		operation, err := clerk.Begin(ctx, redrive) // what dies from now on is not in it
//		if err != nil {
//			log.Fatal(err)
//		}
//		done, err := clerk.Run(ctx, operation.Operation, redrive) // may be stopped, and called again
//		fmt.Println(done.Done(), "redriven", err)
//	}
//
// Views, such as [LetterView], have a JSON form. A view always has all its fields: an unknown time
// is null, an empty text is "", an empty list is []. Times are RFC 3339 in UTC. Names never change
// within a major version.
package office

import (
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// Config of an office.
type Config struct {
	Store store.Store      // required
	Actor string           // the operator or program that acts, for the audit; required for changes
	Clock func() time.Time // default time.Now
}

// Office is safe for concurrent use.
type Office struct {
	store store.Store
	actor string
	clock func() time.Time

	wording Wording
	looked  *lookedAt // shared by all wordings
}

// New opens an office over a store. Errors are of [nixie.CodeInvalid].
func New(c Config) (*Office, error) {
	if c.Store == nil {
		return nil, nixie.Errorf(nixie.CodeInvalid, "office has no store")
	}
	if err := nixie.CheckName("actor", c.Actor); err != nil {
		return nil, err
	}
	if c.Clock == nil {
		c.Clock = time.Now //nolint:forbidigo // the default
	}
	return &Office{store: c.Store, actor: c.Actor, clock: c.Clock, looked: &lookedAt{}}, nil
}

// For returns the same office for another actor, a person. Errors are of [nixie.CodeInvalid].
func (o *Office) For(actor string) (*Office, error) {
	switch {
	case strings.TrimSpace(actor) == "":
		return nil, nixie.Errorf(nixie.CodeInvalid, "actor is empty: name who acts")
	case actor == store.System:
		return nil, nixie.Errorf(nixie.CodeInvalid, "actor %q is the name of rules: give the person another", actor)
	}
	if err := nixie.CheckName("actor", actor); err != nil {
		return nil, err
	}
	other := *o
	other.actor = actor
	return &other, nil
}
