// Package nixie has the words of Nixie, a system for work that can fail. With it a program names
// its work, sends it and handles it:
//
//	package main
//
//	import (
//		"context"
//		"errors"
//		"fmt"
//		"log"
//		"os/signal"
//		"syscall"
//
//		"github.com/nixie-go/nixie"
//		"github.com/nixie-go/nixie/store"
//		"github.com/nixie-go/nixie/store/sqlite"
//		"github.com/nixie-go/nixie/worker"
//	)
//
//	type Invoice struct{ Customer string }
//
//	var sendInvoice = nixie.NewType[Invoice]("send-invoice", nixie.Queue("billing"))
//
//	func send(_ context.Context, job *nixie.Job[Invoice]) error {
//		if job.Body.Customer == "" {
//			return nixie.Permanent(errors.New("the invoice has no customer")) // buried at once
//		}
//		fmt.Println("sent to", job.Body.Customer)
//		return nil // any other error is tried again, and in the end is a dead letter
//	}
//
//	func main() {
//		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
//		defer stop()
//		st, err := sqlite.Open("billing.db", sqlite.Options{})
//		if err != nil {
//			log.Fatal(err)
//		}
//		defer st.Close()
//		if _, err := sendInvoice.Enqueue(ctx, st, Invoice{Customer: "Ada"}); err != nil {
//			log.Fatal(err)
//		}
//		w, err := worker.New(worker.Config{
//			Source:  store.NewSource(st, "billing"),
//			Handler: nixie.Routes(sendInvoice.Handle(send)),
//		})
//		if err != nil {
//			log.Fatal(err)
//		}
//		if err := w.Run(ctx); err != nil { // returns when ctx ends and no message is in hand
//			log.Fatal(err)
//		}
//	}
//
// A [Message] that a worker has claimed is a [Delivery]. Its claim is a [Lease]: it ends at some
// time, and has a number by which the store recognises a late worker. A [Handler] reports success
// or failure by the error it returns. Package policy decides one [Verb] from that error, and the
// store or broker applies the verb as a [Settlement]. A message that cannot succeed becomes a
// [Letter] in the dead letter office, with a [Failure] for every attempt.
//
// This package imports the standard library only. The engines are in package worker and redrive,
// the stores under store, the brokers under broker, and package office has what operators do.
package nixie
