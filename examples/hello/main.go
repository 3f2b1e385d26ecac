// Command hello greets in the file hello.txt. What cannot be written becomes a letter in hello.db.
package main

import (
	"context"
	"errors"
	"log"
	"os"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/local"
)

var hello = nixie.NewType[string]("hello")

func greet(_ context.Context, job *nixie.Job[string]) error {
	return nixie.Permanent(os.WriteFile(job.Body, []byte("hello\n"), 0o600))
}

func main() {
	ctx := context.Background()
	queue, err := local.Open("hello.db", hello.Handle(greet))
	if err != nil {
		log.Fatal(err)
	}
	_, err = hello.Enqueue(ctx, queue, "hello.txt")
	if err = errors.Join(err, queue.Drain(ctx), queue.Close()); err != nil {
		log.Fatal(err)
	}
}
