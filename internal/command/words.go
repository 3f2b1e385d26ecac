package command

import (
	"strings"

	"github.com/nixie-go/nixie"
)

// Words splits a command at blanks and returns its arguments and the file of its program. There is
// no quoting: it refuses quotes and the like. Errors are of [nixie.CodeInvalid].
func Words(text string) (args []string, path string, err error) {
	if args, err = split(text); err != nil {
		return nil, "", err
	}
	if path, err = LookPath(args[0]); err != nil {
		return nil, "", nixie.Errorf(nixie.CodeInvalid, "%w", err)
	}
	return args, path, nil
}

func split(text string) ([]string, error) {
	if strings.ContainsAny(text, "'\"`\\$") {
		return nil, nixie.Errorf(nixie.CodeInvalid,
			"command %s has a quote, a backslash or a $: it is only split at blanks; put it into a script and name that",
			text)
	}
	args := strings.Fields(text)
	if len(args) == 0 {
		return nil, nixie.Errorf(nixie.CodeInvalid, "the command is empty: name a program and its arguments")
	}
	return args, nil
}

// shellWords splits a command as a shell does: at blanks, except in quotes and after a backslash.
// It refuses what a shell would carry out, as nothing does so here. Errors are of
// [nixie.CodeInvalid].
func shellWords(text string) (args []string, err error) { return splitWords(text, false) }

// splitWords splits a command as shellWords does. With values a dollar sign stays, and $$ is one
// that a backslash precedes.
func splitWords(text string, values bool) (args []string, err error) {
	var word strings.Builder
	begun, quote := false, byte(0) // within a word; within quotes of this kind
	for i := 0; i < len(text); i++ {
		c := text[i]
		_, foreign := dollarPath(text[i:])
		switch {
		case quote == 0 && strings.IndexByte(" \t\n\r", c) >= 0:
			if begun {
				args = append(args, word.String())
			}
			word.Reset()
			begun = false
			continue
		case quote == 0 && strings.IndexByte("|&;<>()`", c) >= 0, quote != '\'' && c == '`',
			quote != '\'' && c == '$' && !foreign && (!values || strings.HasPrefix(text[i:], "$(")):
			return nil, invalid("it has %q, which only a shell carries out: quote it with '…', or write a shell step", string(c))
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case quote != 0 && c == quote:
			quote = 0
		case c == '\\' && i+1 < len(text) && (quote == 0 || quote == '"' && strings.IndexByte("$`\"\\", text[i+1]) >= 0):
			i++
			if values && text[i] == '$' {
				word.WriteByte('$')
			}
			word.WriteByte(text[i])
		default:
			word.WriteByte(c)
		}
		begun = true
	}
	switch {
	case quote != 0:
		return nil, invalid("the quote %c is not closed: close it, or write \\%c for the sign", quote, quote)
	case begun:
		args = append(args, word.String())
	}
	if len(args) == 0 {
		return nil, invalid("the command is empty: name a program and its arguments")
	}
	return args, nil
}
