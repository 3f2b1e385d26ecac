package proof

import (
	"slices"
	"testing"
)

func stones() Proof { return Proof{Name: "stones", Unit: "stones", Quick: 5, Long: 7, Deep: 9} }

// seeds runs a proof whose every seed stands for two cases.
func seeds(t *testing.T, p Proof) []uint64 {
	var got []uint64
	p.run(t, func(_ *testing.T, seed uint64) int {
		got = append(got, seed)
		return 2
	})
	return got
}

func TestQuickIsTheSameEachTime(t *testing.T) {
	t.Setenv(DeepVar, "")
	t.Setenv(SeedVar, "")
	t.Setenv(TierVar, "")
	want := []uint64{1, 2, 3}
	if testing.Short() {
		want = want[:1]
	}
	for range 2 {
		if got := seeds(t, stones()); !slices.Equal(got, want) {
			t.Errorf("took seeds %v, want %v", got, want)
		}
	}
	t.Setenv(TierVar, "long")
	if got := seeds(t, stones()); !slices.Equal(got, []uint64{1, 2, 3, 4}) {
		t.Errorf("long run took seeds %v", got)
	}
}

func TestDeepGoesOn(t *testing.T) {
	folder := t.TempDir()
	t.Setenv(DeepVar, folder)
	t.Setenv(SeedVar, "")
	first := stones()
	first.Deep = 4
	if got := seeds(t, first); !slices.Equal(got, []uint64{1, 2}) {
		t.Errorf("first run took seeds %v", got)
	}
	if got := seeds(t, stones()); !slices.Equal(got, []uint64{3, 4, 5}) {
		t.Errorf("second run took seeds %v", got)
	}
	if got := seeds(t, stones()); got != nil {
		t.Errorf("a run that was finished took seeds %v", got)
	}
	if done, err := Load(folder, "stones"); err != nil || done.Count != 10 || done.Seed != 5 || done.Seconds <= 0 {
		t.Errorf("progress is %+v, %v", done, err)
	}
}

func TestOneSeedAlone(t *testing.T) {
	t.Setenv(DeepVar, t.TempDir())
	t.Setenv(SeedVar, "17")
	if got := seeds(t, stones()); !slices.Equal(got, []uint64{17}) {
		t.Errorf("took seeds %v", got)
	}
}
