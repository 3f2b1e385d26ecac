package serve

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// However many ask a store that hangs, one call runs, and all of them get an error in time.
func TestHangingStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		hangs := make(chan struct{})
		a := answer[int]{keep: checkFor, clock: time.Now, within: t.Context(), ask: func(context.Context) (int, error) {
			calls.Add(1)
			<-hangs // it ignores its context
			return 7, nil
		}}
		began := time.Now()
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				if _, err := a.get(t.Context()); err == nil {
					t.Error("a store that hangs gives an answer")
				}
			})
		}
		all.Wait()
		if calls.Load() != 1 || time.Since(began) != answerLimit {
			t.Errorf("%d calls, answers after %s", calls.Load(), time.Since(began))
		}
		close(hangs)
		synctest.Wait()
		if n, err := a.get(t.Context()); n != 7 || err != nil || calls.Load() != 1 {
			t.Errorf("the late answer is %d, %v after %d calls", n, err, calls.Load())
		}
	})
}

// An answer is kept for a moment, errors too.
func TestAnswerIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		a := answer[int]{keep: checkFor, clock: time.Now, within: t.Context(), ask: func(context.Context) (int, error) {
			calls++
			return calls, errors.New("no")
		}}
		for i, want := range []int{1, 1, 2, 2} {
			if n, err := a.get(t.Context()); n != want || err == nil {
				t.Errorf("answer %d is %d, %v, want %d", i, n, err, want)
			}
			time.Sleep(checkFor * 6 / 10)
		}
		a.wait(t.Context())
	})
}
