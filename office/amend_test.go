package office_test

import (
	"strings"
	"testing"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
)

// TestAmendShowsEachMessage amends a waiting message and an ended one. The view of each shows its
// state afterwards; that of the ended one has the refusal.
func TestAmendShowsEachMessage(t *testing.T) {
	w := newWatched(t)
	w.die("g", 1)
	receipts, err := w.st.Enqueue(t.Context(), nixie.Message{Queue: "q", Key: "waits"})
	if err != nil {
		t.Fatal(err)
	}
	letters, _, err := w.st.Letters(t.Context(), nixie.Filter{}, store.Page{})
	if err != nil || len(letters) != 1 {
		t.Fatal(letters, err)
	}
	var shown []office.AmendView
	ids := []nixie.ID{receipts[0].ID, letters[0].Message.ID}
	err = w.o.Amend(t.Context(), ids, &office.AmendRequest{Verb: store.Cancel, Reason: "r"}, func(v office.AmendView) error {
		shown = append(shown, v)
		return nil
	})
	if err != nil || len(shown) != 2 {
		t.Fatalf("shown %+v, %v", shown, err)
	}
	if v := shown[0]; v.Key != "waits" || v.State != nixie.Canceled || v.Error != "" || v.Letter != "" {
		t.Errorf("of the message that waited: %+v", v)
	}
	if v := shown[1]; v.State != nixie.Dead || !strings.Contains(v.Error, "dead") || v.Letter != letters[0].ID.String() {
		t.Errorf("of the message that had ended: %+v", v)
	}
}
