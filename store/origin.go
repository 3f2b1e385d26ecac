package store

import (
	"encoding/json"
	"slices"
	"strings"

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

// OriginTexts returns the texts under which a store may have an origin: its own, and those without
// what an earlier version, or one that could not read it, does not know.
func OriginTexts(o *nixie.Origin) []string {
	if o == nil {
		return nil
	}
	unnamed := *o
	unnamed.Server, unnamed.Earlier = "", nixie.ID{}
	bare := nixie.Origin{System: o.System, Channel: o.Channel, Partition: o.Partition, Offset: o.Offset, MessageID: o.MessageID,
		Key: o.Key, Timestamp: o.Timestamp}
	return slices.Compact([]string{OriginText(o), OriginText(&unnamed), OriginText(&bare)})
}

// KnownOrigin reports whether a store that has an origin knows another one by it.
func KnownOrigin(has, other *nixie.Origin) bool {
	return has.Same(other) && slices.Contains(OriginTexts(other), OriginText(has))
}

// BodyAt reads from such a text where the body lies, "" if the message has it.
func BodyAt(origin string) string {
	if !strings.Contains(origin, `"body_at"`) {
		return "" // the common case
	}
	var o struct {
		BodyAt string `json:"body_at"`
	}
	_ = json.Unmarshal([]byte(origin), &o) // damage is found where the letter is read
	return o.BodyAt
}
