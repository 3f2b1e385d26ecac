package store

import (
	"encoding/json"

	"github.com/nixie-go/nixie"
)

// OriginText is an origin as stores keep and find it, "" for none: those that
// [nixie.Origin.Same] calls the same have one text, whatever zone their time is in.
func OriginText(o *nixie.Origin) string {
	if o == nil {
		return ""
	}
	same := *o
	same.Timestamp = o.Timestamp.UTC()
	text, _ := json.Marshal(&same) // strings, bytes, numbers and a time in range: see [nixie.Message.Check]
	return string(text)
}
