package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/console"
	"github.com/nixie-go/nixie/internal/proof"
)

// Each form of a body shows a number as it was written.
func TestExactNumbers(t *testing.T) {
	t.Parallel()
	var list []nixie.Letter
	for i, n := range proof.Numbers() {
		l := letter(1+i, "orders", "timeout: slow", "slow", 0)
		l.Message.Body = []byte(`{"n": ` + n.Text + `, "in": [{"n":` + n.Next + `}]}`)
		list = append(list, l)
	}
	s := open(t, console.Options{}, list...)
	for i, n := range proof.Numbers() {
		for _, as := range []string{"tree", "json", "raw"} {
			page := s.page(http.StatusOK, "/letter/"+list[i].ID.String()+"?as="+as)
			if !strings.Contains(page, n.Text) || !strings.Contains(page, n.Next) {
				t.Errorf("as %s, %s is another number", as, n.Name)
			}
			t.Logf("%-22s %-14s as written", "a body as "+as, n.Name)
		}
	}
}
