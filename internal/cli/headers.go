package cli

import (
	"slices"
	"strings"

	"github.com/nixie-go/nixie/broker"
)

// wantedHeader is a --header of a redrive.
type wantedHeader struct {
	name, value string
	exact       bool // the value counts as well
}

// parseHeaders reads --header.
func parseHeaders(texts []string) (all []wantedHeader, err error) {
	for _, text := range texts {
		name, value, exact := strings.Cut(text, "=")
		if name == "" {
			return nil, usagef("--header is %q: give it as NAME=VALUE, or NAME alone", text)
		}
		all = append(all, wantedHeader{name, value, exact})
	}
	return all, nil
}

// hasAll reports whether a record has each of the headers.
func hasAll(headers []broker.RecordHeader, wanted []wantedHeader) bool {
	for _, want := range wanted {
		if !slices.ContainsFunc(headers, func(h broker.RecordHeader) bool {
			return strings.EqualFold(h.Name, want.name) && (!want.exact || string(h.Value) == want.value)
		}) {
			return false
		}
	}
	return true
}
