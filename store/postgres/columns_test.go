package postgres

import (
	"database/sql/driver"
	"testing"

	"github.com/nixie-go/nixie"
)

// An ID that may be missing is an argument for a driver, too, that does not know the types.
func TestArgumentThatMayBeNull(t *testing.T) {
	id := nixie.ID{15: 0xab}
	v, ok := argument(idOrNull(id)).(driver.Valuer)
	if !ok {
		t.Fatalf("%T is no text for a driver", argument(idOrNull(id)))
	}
	if text, err := v.Value(); err != nil || text != "000000000000000000000000000000ab" {
		t.Errorf("%v, %v", text, err)
	}
	if none := argument(idOrNull(nixie.ID{})); none != nil {
		t.Errorf("no ID is %#v", none)
	}
}
