package broker

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nixie-go/nixie"
)

// What follows has a key of message, generation and index in its queue, and for a retry of the
// attempt: it stays the same when the record comes again, and is another after a redrive.
func TestKeysOfWhatFollows(t *testing.T) {
	d := &nixie.Delivery{}
	d.ID, d.Generation, d.Attempts = nixie.ID{1}, 1, 3
	then := []nixie.Message{{Queue: "a"}, {Queue: "b"}, {Queue: "a"}}
	redriven := *d
	redriven.Generation = 2
	for want, st := range map[string]nixie.Settlement{
		"[1:0 1:0 1:1]":       {Delivery: d, Verb: nixie.Complete},
		"[1.3:0 1.3:0 1.3:1]": {Delivery: d, Verb: nixie.Retry},
		"[2:0 2:0 2:1]":       {Delivery: &redriven, Verb: nixie.Bury},
	} {
		st.Then = then
		var got []string
		for _, m := range keyed(&st) {
			got = append(got, strings.TrimPrefix(m.DedupeKey, "then:"+d.ID.String()+":"))
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%s: keys %s, want %s", st.Verb, got, want)
		}
	}
	if then[0].DedupeKey != "" {
		t.Error("the settlement's own messages have keys now")
	}
}
