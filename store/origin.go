package store

import (
	"encoding/json"

	"github.com/nixie-go/nixie"
)

// OriginText returns the text by which stores keep and find an origin, "" for nil. Origins that are
// equal by [nixie.Origin.Same] have the same text, also if the zones of their times differ.
func OriginText(o *nixie.Origin) string {
	if o == nil {
		return ""
	}
	same := *o
	same.Timestamp = o.Timestamp.UTC()
	text, _ := json.Marshal(&same) // strings, bytes, numbers and a time in range: see [nixie.Message.Check]
	return string(text)
}
