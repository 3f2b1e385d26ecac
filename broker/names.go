package broker

import (
	"strings"

	"github.com/nixie-go/nixie"
)

const (
	sourcePart = "{source}"

	// DefaultLetters is the name of the channel that takes the letters of a source.
	DefaultLetters = "{source}.dlq"
)

// Named fills {source} in the name of a channel in.
func Named(template, source string) string { return named(template, source) }

// CheckChannel says what is wrong with the name of a channel that may have {source}
// in it. What names it for the error text.
func CheckChannel(what, template string) error { return checkTemplate(what, template) }

// named fills a template in.
func named(template, source string) string {
	if template == sourcePart {
		return source
	}
	return strings.ReplaceAll(template, sourcePart, source)
}

// checkTemplate says what is wrong with the name of a channel.
func checkTemplate(what, template string) error {
	if strings.ContainsAny(strings.ReplaceAll(template, sourcePart, ""), "{}") {
		return nixie.Errorf(nixie.CodeInvalid, "%s is %q: the only part in braces that it may have is %s", what, template, sourcePart)
	}
	return nixie.CheckName(what, template)
}
