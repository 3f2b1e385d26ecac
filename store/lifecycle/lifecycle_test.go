package lifecycle

import (
	"fmt"
	"slices"
	"testing"

	"github.com/nixie-go/nixie"
)

func TestItems(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		answer error
		item   Item
		open   nixie.Code // answer to a second resolution
	}{
		{nil, ItemDone, nixie.CodeConflict},
		{nixie.Errorf(nixie.CodeConflict, "changed"), ItemSkipped, nixie.CodeConflict},
		{nixie.Errorf(nixie.CodeLimit, "too many notes"), ItemSkipped, nixie.CodeConflict},
		{nixie.Errorf(nixie.CodeInternal, "damaged"), ItemFailed, nixie.CodeConflict},
	} {
		item := ItemOf(c.answer)
		if code := nixie.CodeOf(item.Open(nixie.ID{1}, nixie.ID{2})); item != c.item || code != c.open {
			t.Errorf("%v: item is %q, want %q; to open it again is %q, want %q", c.answer, item, c.item, code, c.open)
		}
	}
	if err := ItemPending.Open(nixie.ID{1}, nixie.ID{2}); err != nil {
		t.Error(err)
	}
	if err := Item("").Open(nixie.ID{1}, nixie.ID{2}); nixie.CodeOf(err) != nixie.CodeNotFound {
		t.Error(err)
	}
}

func TestLearn(t *testing.T) {
	t.Parallel()
	full := make([]string, nixie.MaxSteps)
	for i := range full {
		full[i] = fmt.Sprint(i)
	}
	for _, c := range []struct {
		name              string
		known, told, want []string
		code              nixie.Code
	}{
		{"nothing", nil, nil, nil, ""},
		{"the first", nil, []string{"a", "b", "a"}, []string{"a", "b"}, ""},
		{"some again, in another order", []string{"a", "b"}, []string{"c", "b"}, []string{"a", "b", "c"}, ""},
		{"the last", full[1:], full[:1], append(slices.Clone(full[1:]), "0"), ""},
		{"all again", full, full, full, ""},
		{"one more", full, []string{"a"}, full, nixie.CodeLimit},
	} {
		got, err := Learn(slices.Clone(c.known), &nixie.Delivery{Message: nixie.Message{Steps: c.told}})
		if !slices.Equal(got, c.want) || nixie.CodeOf(err) != c.code {
			t.Errorf("%s: %d steps, %v", c.name, len(got), err)
		}
	}
}
