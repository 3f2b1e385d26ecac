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

// named fills a template in.
func named(template, source string) string { return strings.ReplaceAll(template, sourcePart, source) }

// checkTemplate says what is wrong with the name of a channel.
func checkTemplate(what, template string) error {
	if strings.ContainsAny(strings.ReplaceAll(template, sourcePart, ""), "{}") {
		return nixie.Errorf(nixie.CodeInvalid, "%s is %q: the only part in braces that it may have is %s", what, template, sourcePart)
	}
	return nixie.CheckName(what, template)
}
