package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/config"
)

// wrongFlag words the errors of flags: which flag, what was given, and what it takes.
func wrongFlag(cmd *cobra.Command, err error) error {
	var value *pflag.InvalidValueError
	var missing *pflag.ValueRequiredError
	var unknown *pflag.NotExistError
	var form *pflag.InvalidSyntaxError
	see := "see " + cmd.CommandPath() + " --help"
	switch {
	case errors.As(err, &value):
		return usageError{wrongValue(value)}
	case errors.As(err, &missing):
		return usagef("%s has no value: give one after it, or %s", named(missing.GetFlag()), see)
	case errors.As(err, &form):
		return usagef("%q is no flag: %s", form.GetSpecifiedFlag(), see)
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if like := nearTo(unknown.GetSpecifiedName(), names); len(like) > 0 {
			see = "did you mean --" + strings.Join(like, " or --") + "? or " + see
		}
	}
	return usageError{fmt.Errorf("%w: %s", err, see)}
}

// named is a flag as it can be typed.
func named(f *pflag.Flag) string {
	if f.Shorthand != "" {
		return "-" + f.Shorthand + ", --" + f.Name
	}
	return "--" + f.Name
}

// wrongValue says what a flag takes in words of ours: those of the libraries that read numbers,
// lists and words name neither the flag nor a way out.
func wrongValue(e *pflag.InvalidValueError) error {
	given, cause := e.GetValue(), errors.Unwrap(e)
	takes := ""
	switch kind := e.GetFlag().Value.Type(); {
	case kind == "bool":
		takes = "give true or false, or the flag alone"
	case kind == "intSlice":
		takes = "give whole numbers with commas between"
	case kind == "stringSlice":
		takes = "give names with commas between, and one with a quote or a comma in double quotes"
	case errors.Is(cause, strconv.ErrRange):
		takes = "no number of that size is taken: give a smaller one"
	case strings.HasPrefix(kind, "int"):
		takes = "give a whole number"
	}
	if takes != "" {
		return fmt.Errorf("%s is %.60q: %s", named(e.GetFlag()), given, takes)
	}
	if more, repeats := strings.CutPrefix(cause.Error(), strconv.Quote(given)+" is "); repeats {
		return fmt.Errorf("%s is %q, %s", named(e.GetFlag()), given, more)
	}
	return fmt.Errorf("%s is %.60q: %w", named(e.GetFlag()), given, cause)
}

// unwritable says why the file or folder of a flag cannot be made, and what to do.
func unwritable(flag string, err error) error {
	var at *fs.PathError
	switch {
	case !errors.As(err, &at):
		return fmt.Errorf("%s: %w", flag, err)
	case errors.Is(err, fs.ErrNotExist):
		return nixie.Errorf(nixie.CodeInvalid, "%s: folder %s does not exist: make it, or name another", flag, filepath.Dir(at.Path))
	case errors.Is(err, fs.ErrPermission):
		return nixie.Errorf(nixie.CodeInvalid, "%s: %s cannot be made by this user: change the rights of its folder, or name another", flag,
			at.Path)
	}
	return nixie.Errorf(nixie.CodeInvalid, "%s: %s cannot be written: %w: name another", flag, at.Path, at.Err)
}

// openInput opens the file of an argument.
func openInput(name string) (*os.File, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, config.Unreadable("", name, err)
	}
	if about, err := file.Stat(); err == nil && about.IsDir() {
		_ = file.Close() // nothing was read
		return nil, config.Unreadable("", name, syscall.EISDIR)
	}
	return file, nil
}
