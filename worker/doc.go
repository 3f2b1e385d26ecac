// Package worker, for programs, is the loop: receive, handle, decide, settle, extend, drain.
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
//		"github.com/nixie-go/nixie/store"
//		"github.com/nixie-go/nixie/store/memory"
//		"github.com/nixie-go/nixie/worker"
//	)
//
//	func main() {
//		ctx := context.Background() // of a service, one that a signal ends
//		st := memory.New(memory.Options{})
//		if _, err := st.Enqueue(ctx, nixie.Message{Queue: "mails", Key: "to Ada"}, nixie.Message{Queue: "mails"}); err != nil {
//			log.Fatal(err)
//		}
//		w, err := worker.New(worker.Config{
//			Source: store.NewSource(st, "mails"),
//			Handler: nixie.HandlerFunc(func(_ context.Context, d *nixie.Delivery) error {
//				if d.Key == "" {
//					return nixie.Permanent(errors.New("the mail has no address"))
//				}
//				fmt.Println("sent", d.Key, "at attempt", d.Attempts)
//				return nil
//			}),
//			Concurrency: 8,
//			Timeout:     time.Minute, // of each attempt
//			Until:       worker.Until{Idle: true},
//		})
//		if err != nil {
//			log.Fatal(err)
//		}
//		if err := w.Run(ctx); err != nil { // returns when nothing is in hand
//			log.Fatal(err)
//		}
//	}
//
// A [Worker] takes deliveries from one source and runs a handler on each, in a fixed number of
// goroutines. It asks package policy for the decision and settles many deliveries in one call. A
// [Desk] decides and settles without the loop.
//
// # What the worker promises
//
//   - A handler starts only under a valid lease, and its context ends before that lease can end.
//     The context ends at the deadline, when the lease is lost, when renewing has failed for most
//     of a lease, within about a second after an operator canceled the message, or when the worker
//     stops. It behaves like one of package context; its cause is [ErrLeaseLost], a
//     [*CanceledError] or [ErrStopping].
//   - The worker settles every outcome, also a late one, so that the source can refuse it and the
//     observer can report it. It repeats a settlement that fails for now until the lease ends.
//   - At most a quarter of a lease of work waits in hand, by the measured speed of the handler. The
//     worker gives back a delivery that has nevertheless waited for a whole lease.
//   - The worker renews no lease of a handler that goes on for a whole lease after its context has
//     ended.
//   - A message whose holder vanished is judged and never run on that claim. If it may run again it
//     is a suspect. Suspects run in groups with nothing else in hand, and the groups halve with
//     each crash. So a message that kills its process costs the other messages few attempts. With
//     a ProgressLog it costs nothing to messages that had not begun.
//   - When Run returns nil nothing is in hand. It has released deliveries that had not started, and
//     those whose handlers stopped because the worker did, and refunded their attempts.
//   - Deaths and failing calls are in the log, see Config.Logger. A source that is closed before
//     its worker has ended makes Run return an error.
//
// A message in the loop costs an index into a shared batch and a reading of the clock. Contexts
// live inside the batch, and one watchdog ends late ones. A handler pays for more only when it asks
// its context for more.
package worker
