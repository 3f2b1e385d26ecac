package console

import (
	"fmt"
	"runtime/debug"
	"sync"
)

// maxAtOnce limits the questions of a page that the store answers at the same time: each takes a
// connection of a pool that others use, too, and the memory of a cache in SQLite.
const maxAtOnce = 2

// atOnce asks questions that do not depend on each other at the same time, and waits for all
// answers. It returns the error of the first question that has one. A panic becomes one of the
// caller, with the stack of the question: the server survives it there, and not on our goroutine.
func atOnce(questions ...func() error) error {
	errs, panics := make([]error, len(questions)), make([]string, len(questions))
	free := make(chan struct{}, maxAtOnce)
	var all sync.WaitGroup
	for i, ask := range questions {
		free <- struct{}{}
		all.Go(func() {
			defer func() {
				if cause := recover(); cause != nil {
					panics[i] = fmt.Sprintf("%v\n%s", cause, debug.Stack())
				}
				<-free
			}()
			errs[i] = ask()
		})
	}
	all.Wait()
	for i := range questions {
		if panics[i] != "" {
			panic(panics[i])
		}
		if errs[i] != nil {
			return errs[i]
		}
	}
	return nil
}
