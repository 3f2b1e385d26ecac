package command

import (
	"strings"

	"github.com/nixie-go/nixie"
)

// Words reads a command that was given as one text: its arguments, and the file
// of its program. It is split at blanks. There is no quoting, and what looks
// like it is refused instead of being misunderstood. Errors are of
// [nixie.CodeInvalid].
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
		return nil, nixie.Errorf(nixie.CodeInvalid, "command %s: it is split at blanks and nothing in it is quoted or expanded; put such a command into a script and name that", text)
	}
	args := strings.Fields(text)
	if len(args) == 0 {
		return nil, nixie.Errorf(nixie.CodeInvalid, "the command is empty: name a program and its arguments")
	}
	return args, nil
}
