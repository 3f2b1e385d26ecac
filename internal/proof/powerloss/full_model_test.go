package powerloss_test

import (
	"math/rand/v2"
	"testing"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/proof/faultdisk"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
	"github.com/nixie-go/nixie/store/storetest"
)

// TestModelOnAFullDisk compares the store with the reference store, as the suite for
// stores does, on a disk that is full at some write of each call: a caller that is refused
// calls again once there is room.
func TestModelOnAFullDisk(t *testing.T) {
	refused := 0
	open := func(t testing.TB, clock *storetest.Clock) storetest.Shared {
		disk := faultdisk.New(t, "model")
		rng := rand.New(rand.NewPCG(1, 0))
		try := func(_ string, call func() error) {
			disk.FailAt(1+rng.IntN(8), oneOf(rng, fullDisks()...))
			err := call()
			disk.Heal()
			if nixie.CodeOf(err) == nixie.CodeUnavailable {
				refused++
				_ = call() // its answer is compared
			}
		}
		var joined []*sqlite.Store
		return storetest.Shared{
			Join: func(owner string) store.Store {
				s, err := sqlite.Open(disk.Path("store.db"), sqlite.Options{VFS: disk.VFS(), Reserve: -1, Clock: clock.Now, Owner: owner})
				if err != nil {
					t.Fatal(err)
				}
				joined = append(joined, s)
				return &crowded{s, try}
			},
			Close: func() {
				for _, s := range joined {
					if err := s.Close(); err != nil {
						t.Error(err)
					}
				}
			},
		}
	}
	for seed := range uint64(3) {
		storetest.ModelWithoutFaults(t, storetest.Harness{Open: open}, seed, false)
	}
	t.Logf("%d calls were refused and repeated", refused)
	if refused < 100 {
		t.Errorf("only %d calls were refused", refused)
	}
}
