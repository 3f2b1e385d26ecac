package lifecycle

import (
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// Edited returns the reason of the audit entry for an edit of a message with this hash of the body
// and these headers. It is "" for an edit that changes nothing.
func Edited(have nixie.Hash, headers []nixie.Header, e *store.Edit) string {
	var parts []string
	if hash := nixie.HashBody(e.Body); hash != have {
		parts = append(parts, "body "+change(have, hash))
	}
	if !slices.Equal(headers, e.Headers) {
		parts = append(parts, "headers "+change(hashHeaders(headers), hashHeaders(e.Headers)))
	}
	if len(parts) == 0 {
		return ""
	}
	return "edited: " + strings.Join(parts, ", ")
}

func change(before, after nixie.Hash) string {
	return "sha256 " + hex.EncodeToString(before[:]) + " → " + hex.EncodeToString(after[:])
}

// hashHeaders returns the hash of the headers as JSON.
func hashHeaders(headers []nixie.Header) nixie.Hash {
	text, _ := json.Marshal(append([]nixie.Header{}, headers...)) // of strings: it cannot fail
	return nixie.HashBody(text)
}
