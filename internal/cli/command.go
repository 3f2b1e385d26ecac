package cli

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nixie-go/nixie/office"
)

// flagGroup is a group of flags that commands share. A command registers it. When the flags are
// parsed, read checks and keeps what was given, before a store is opened.
type flagGroup interface {
	register(*pflag.FlagSet)
	read(*globals) error
}

// checked is a group without flags: it checks the flags of others.
type checked func() error

func (checked) register(*pflag.FlagSet) {}
func (c checked) read(*globals) error   { return c() }

// command completes cmd: it adds the flags of the groups, and runs do after it has read them.
// Without other Args cmd takes no arguments.
func (g *globals) command(cmd *cobra.Command, do func(context.Context, []string) error, groups ...flagGroup) *cobra.Command {
	for _, group := range groups {
		group.register(cmd.Flags())
	}
	if cmd.Args == nil {
		cmd.Args = noArgs
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		for _, group := range groups {
			if err := group.read(g); err != nil {
				return err
			}
		}
		return do(cmd.Context(), args)
	}
	return cmd
}

// inOffice completes a command that works in the office over the store that is there.
func (g *globals) inOffice(
	cmd *cobra.Command, do func(context.Context, *office.Office, []string) error, groups ...flagGroup,
) *cobra.Command {
	return g.command(cmd, func(ctx context.Context, args []string) error {
		return g.visit(func(o *office.Office) error { return do(ctx, o, args) })
	}, groups...)
}

// family makes a command that only groups others.
func (g *globals) family(path string, members ...*cobra.Command) *cobra.Command {
	cmd := g.described(path, noArgs)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(members...)
	return cmd
}

// arguments accepts from least to most arguments. In the text for other numbers %[1]s stands for
// the path of the command and %[2]d for the number.
func arguments(least, most int, text string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if n := len(args); n < least || n > most {
			return usagef("%[1]s "+text, cmd.CommandPath(), n)
		}
		return nil
	}
}

// oneArg accepts one argument.
func oneArg(what string) cobra.PositionalArgs {
	return arguments(1, 1, "wants one "+what+", has %[2]d: see %[1]s --help")
}
