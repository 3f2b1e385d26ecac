package nixie_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/worker"
)

var greeting = nixie.NewType[string]("greeting", nixie.Queue("greetings"))

func greet(_ context.Context, job *nixie.Job[string]) error {
	if job.Body == "" {
		return nixie.Permanent(errors.New("there is no name")) // not tried again
	}
	fmt.Println("hello,", job.Body)
	return nil // any other error is tried again, and in the end is a dead letter
}

func Example() {
	ctx := context.Background()
	st := memory.New(memory.Options{}) // or sqlite.Open, or postgres.OpenPool
	for _, name := range []string{"Ada", "", "Grace"} {
		if _, err := greeting.Enqueue(ctx, st, name); err != nil {
			log.Fatal(err)
		}
	}
	w, err := worker.New(worker.Config{
		Source:  store.NewSource(st, "greetings"),
		Handler: nixie.Routes(greeting.Handle(greet)),
		Until:   worker.Until{Idle: true}, // a service leaves this out, and runs until ctx ends
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
	letters, _, err := st.Letters(ctx, nixie.Filter{}, store.Page{})
	fmt.Println(len(letters), "cannot be greeted", err)
	// Unordered output:
	// hello, Ada
	// hello, Grace
	// 1 cannot be greeted <nil>
}
