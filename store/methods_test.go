package store

import (
	"reflect"
	"testing"
)

// A store has few methods, because the author of a store has to know them all.
func TestStoreStaysSmall(t *testing.T) {
	if n := reflect.TypeFor[Store]().NumMethod(); n > 19 {
		t.Errorf("Store has %d methods, the limit is 19: make them one, or a field of Features", n)
	} else {
		t.Logf("Store has %d methods", n)
	}
}
