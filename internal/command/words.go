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
