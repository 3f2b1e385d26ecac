package memory_test

import (
	"testing"

	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/store/storetest"
)

func shared(clock *storetest.Clock) storetest.Shared {
	first := memory.New(memory.Options{Clock: clock.Now})
	return storetest.Shared{
		Join:  func(owner string) store.Store { return first.Join(owner) },
		Crash: func(st store.Store) { st.(*memory.Store).Crash() },
		Close: func() {},
	}
}

var harness = storetest.Harness{
	Open:      func(_ testing.TB, clock *storetest.Clock) storetest.Shared { return shared(clock) },
	Reference: shared,
}

func TestStore(t *testing.T)      { storetest.Run(t, harness) }
func TestModel(t *testing.T)      { storetest.Model(t, harness) }
func BenchmarkStore(b *testing.B) { storetest.Bench(b, harness) }
