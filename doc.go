// Package nixie, for programs, has the words of Nixie, a system for work that can fail. With it a
// program names its work, sends it and handles it:
//
//	package main
//
//	import (
//		"context"
//		"errors"
//		"fmt"
//		"log"
//
//		"github.com/nixie-go/nixie"
//		"github.com/nixie-go/nixie/store"
//		"github.com/nixie-go/nixie/store/memory"
//		"github.com/nixie-go/nixie/worker"
//	)
//
//	var greeting = nixie.NewType[string]("greeting", nixie.Queue("greetings"))
//
//	func greet(_ context.Context, job *nixie.Job[string]) error {
//		if job.Body == "" {
//			return nixie.Permanent(errors.New("there is no name")) // not tried again
//		}
//		fmt.Println("hello,", job.Body)
//		return nil // any other error is tried again, and in the end is a dead letter
//	}
//
//	func main() {
//		ctx := context.Background()
//		st := memory.New(memory.Options{}) // or sqlite.Open, or postgres.OpenPool
//		for _, name := range []string{"Ada", "", "Grace"} {
//			if _, err := greeting.Enqueue(ctx, st, name); err != nil {
//				log.Fatal(err)
//			}
//		}
//		w, err := worker.New(worker.Config{
//			Source:  store.NewSource(st, "greetings"),
//			Handler: nixie.Routes(greeting.Handle(greet)),
//			Until:   worker.Until{Idle: true}, // a service leaves this out, and runs until ctx ends
//		})
//		if err != nil {
//			log.Fatal(err)
//		}
//		if err := w.Run(ctx); err != nil {
//			log.Fatal(err)
//		}
//		letters, _, err := st.Letters(ctx, nixie.Filter{}, store.Page{})
//		fmt.Println(len(letters), "cannot be greeted", err)
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
