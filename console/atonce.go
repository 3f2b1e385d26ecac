package console

import "sync"

// maxAtOnce limits the questions of a page that the store answers at the same time: each takes a
// connection of a pool that others use, too, and the memory of a cache in SQLite.
const maxAtOnce = 2

// atOnce asks questions that do not depend on each other at the same time, and waits for all
// answers. It returns the error of the first question that has one. A panic is passed on to the
// caller, whose server survives it; on the goroutine of a question it would end the program.
func atOnce(questions ...func() error) error {
	errs, panics := make([]error, len(questions)), make([]any, len(questions))
	free := make(chan struct{}, maxAtOnce)
	var all sync.WaitGroup
	for i, ask := range questions {
		free <- struct{}{}
		all.Go(func() {
			defer func() {
				panics[i] = recover()
				<-free
			}()
			errs[i] = ask()
		})
	}
	all.Wait()
	for i := range questions {
		if panics[i] != nil {
			panic(panics[i])
		}
		if errs[i] != nil {
			return errs[i]
		}
	}
	return nil
}
