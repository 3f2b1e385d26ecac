package tier_test

import (
	"slices"
	"testing"

	"github.com/nixie-go/nixie/internal/proof/tier"
)

func proof() tier.Proof { return tier.Proof{Name: "stones", Unit: "stones", Quick: 5, Deep: 9} }

// seeds runs a proof whose every seed stands for two cases.
func seeds(t *testing.T, p tier.Proof) []uint64 {
	var got []uint64
	p.Run(t, func(_ *testing.T, seed uint64) int {
		got = append(got, seed)
		return 2
	})
	return got
}

func TestQuickIsTheSameEachTime(t *testing.T) {
	t.Setenv(tier.DeepVar, "")
	t.Setenv(tier.SeedVar, "")
	for range 2 {
		if got := seeds(t, proof()); !slices.Equal(got, []uint64{1, 2, 3}) {
			t.Errorf("quick run took seeds %v", got)
		}
	}
}

func TestDeepGoesOn(t *testing.T) {
	t.Setenv(tier.DeepVar, t.TempDir())
	t.Setenv(tier.SeedVar, "")
	first := proof()
	first.Deep = 4
	if got := seeds(t, first); !slices.Equal(got, []uint64{1, 2}) {
		t.Errorf("first run took seeds %v", got)
	}
	if got := seeds(t, proof()); !slices.Equal(got, []uint64{3, 4, 5}) {
		t.Errorf("second run took seeds %v", got)
	}
	if got := seeds(t, proof()); got != nil {
		t.Errorf("a run that was finished took seeds %v", got)
	}
}

func TestOneSeedAlone(t *testing.T) {
	t.Setenv(tier.DeepVar, t.TempDir())
	t.Setenv(tier.SeedVar, "17")
	if got := seeds(t, proof()); !slices.Equal(got, []uint64{17}) {
		t.Errorf("took seeds %v", got)
	}
}

// TestDeepEndsInTime begins no seed once its time is over, keeps what it did, and
// goes on with it.
func TestDeepEndsInTime(t *testing.T) {
	folder := t.TempDir()
	t.Setenv(tier.DeepVar, folder)
	t.Setenv(tier.SeedVar, "")
	first := proof()
	first.Deep = 3
	seeds(t, first)
	t.Setenv(tier.UntilVar, "1")
	if got := seeds(t, proof()); got != nil {
		t.Errorf("took seeds %v after its time", got)
	}
	done, err := tier.Load(folder, "stones")
	if err != nil || done.Count != 4 || done.Seed != 2 || done.Seconds <= 0 {
		t.Errorf("progress is %+v, %v", done, err)
	}
	t.Setenv(tier.UntilVar, "")
	if got := seeds(t, proof()); !slices.Equal(got, []uint64{3, 4, 5}) {
		t.Errorf("went on with seeds %v", got)
	}
}
