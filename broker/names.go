package broker

import (
	"strings"

	"github.com/nixie-go/nixie"
)

const (
	sourcePart = "{source}"

	// DefaultLetters names the channel that takes the letters of a source.
	DefaultLetters = "{source}.dlq"
)

// ChannelName replaces {source} in the name of a channel by the source.
func ChannelName(template, source string) string {
	if template == sourcePart {
		return source
	}
	return strings.ReplaceAll(template, sourcePart, source)
}

// CheckChannel refuses a name of a channel that has braces other than {source}, or that is no
// name. What stands for the setting in the error text.
func CheckChannel(what, template string) error {
	if strings.ContainsAny(strings.ReplaceAll(template, sourcePart, ""), "{}") {
		return nixie.Errorf(nixie.CodeInvalid, "%s is %q: the only part in braces that it may have is %s", what, template, sourcePart)
	}
	return nixie.CheckName(what, template)
}
