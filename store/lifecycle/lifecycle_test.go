package lifecycle

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

func TestItems(t *testing.T) {
	t.Parallel()
	var counted store.Operation
	for _, c := range []struct {
		on     store.Event
		answer error
		item   Item
	}{
		{store.OnDiscard, nil, ItemDone},
		{store.OnRedrive, nil, ItemUnderWay},
		{store.OnConfirm, nil, ItemUnobserved},
		{store.OnRedrive, nixie.Errorf(nixie.CodeConflict, "changed"), ItemSkipped},
		{store.OnNote, nixie.Errorf(nixie.CodeLimit, "too many notes"), ItemSkipped},
		{store.OnRedrive, nixie.Errorf(nixie.CodeInternal, "damaged"), ItemFailed},
	} {
		r := &store.Resolution{Letter: nixie.ID{1}, Event: c.on, Operation: nixie.ID{2}}
		item := ItemOf(r, c.answer)
		if code := nixie.CodeOf(item.Open(r, c.on)); item != c.item || code != nixie.CodeConflict {
			t.Errorf("%v: item is %q, want %q; to open it again is %q", c.answer, item, c.item, code)
		}
		item.Count(&counted, 2)
	}
	ItemPending.Count(&counted, 1)
	if want := (store.Operation{Selected: 13, Done: 6, Skipped: 4, Failed: 2, Pending: 1,
		Outcome: store.Outcome{UnderWay: 2, Unobserved: 2}}); !reflect.DeepEqual(counted, want) {
		t.Errorf("counts are %+v, want %+v", counted, want)
	}
	r := &store.Resolution{Event: store.OnConfirm}
	for _, c := range []struct {
		item    Item
		planned store.Event
		code    nixie.Code
	}{
		{ItemPending, store.OnConfirm, ""}, {ItemPending, store.OnRedrive, ""}, {ItemPending, store.OnDiscard, nixie.CodeInvalid},
		{"", store.OnRedrive, nixie.CodeNotFound},
	} {
		if err := c.item.Open(r, c.planned); nixie.CodeOf(err) != c.code {
			t.Errorf("a confirmation of %q in a %s: %v, want code %q", c.item, c.planned, err, c.code)
		}
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
