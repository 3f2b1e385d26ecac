package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/internal/config"
	"github.com/nixie-go/nixie/office"
)

// The command library completes commands and flags, and asks here for their values. A shell that
// completes a word never learns of an error.

const (
	mostAnswers  = 100
	answerWithin = time.Second
)

// completer completes one argument or value: it returns the words that begin with what was typed. A
// word may have a meaning behind a tab.
type completer func(typed string) ([]string, cobra.ShellCompDirective)

// completes prepares the tree for a shell that asks, and for the scripts of shells. Other commands
// pay nothing for it.
func (g *globals) completes(root *cobra.Command, args []string) {
	if len(args) == 0 || args[0] != "completion" && !strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		return
	}
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	root.InitDefaultCompletionCmd()
	ownScripts(root)
	g.completeBelow(root)
}

func (g *globals) completeBelow(c *cobra.Command) {
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if of := g.valuesOf(c, f); of != nil {
			_ = c.RegisterFlagCompletionFunc(f.Name, func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
				return of(typed)
			}) // one of the root that was registered already is the same
		}
	})
	if of := g.argumentsOf(c); c.ValidArgsFunction == nil && len(of) > 0 {
		c.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if cmd.ArgsLenAtDash() < len(args) { // the words of a command; the library itself ends with --
				return nil, cobra.ShellCompDirectiveDefault
			}
			return of[min(len(args), len(of)-1)](typed)
		}
	}
	for _, below := range c.Commands() {
		g.completeBelow(below)
	}
}

// valuesOf returns what completes the value of a flag, nil if it is free text.
func (g *globals) valuesOf(c *cobra.Command, f *pflag.Flag) completer {
	if choice, is := f.Value.(*choice); is {
		return fixed(choice.of...)
	}
	switch f.Name {
	case "queue", "to", "queues":
		return g.stored("queue")
	case "filter":
		return g.filterTerms
	case "resume":
		return g.stored("operation")
	case "status":
		return listOf(fixed(texts(nixie.Statuses())...))
	case "event":
		return listOf(fixed(texts(office.Events())...))
	case "class":
		return fixed(texts(nixie.Classes())...)
	case "reason", "as":
		if strings.HasPrefix(f.Usage, "what") {
			return fixed(texts(nixie.Reasons())...)
		}
	case "by":
		return fixed("died", "first_failed", "last_failed")
	case "store", "exec", "pipe":
		return files
	}
	if strings.HasPrefix(f.Usage, "file") || strings.HasPrefix(f.Usage, "folder") {
		return files
	}
	return nil
}

// argumentsOf returns what completes each argument of a command, by the words of its usage. The
// last completes those that follow.
func (g *globals) argumentsOf(c *cobra.Command) (list []completer) {
	id := "id"
	switch {
	case strings.HasPrefix(pathOf(c), "message"):
		id = "message"
	case strings.HasPrefix(pathOf(c), "operation"):
		id = "operation"
	}
	for _, word := range strings.Fields(c.Use)[1:] {
		switch word = strings.Trim(word, "[]…"); {
		case word == "flags":
		case word == "--": // a command follows
			return append(list, files)
		case strings.HasPrefix(word, "-"):
			return append(list, none)
		case word == "ID" || word == "ITEM":
			list = append(list, g.stored(id))
		case word == "QUEUE":
			list = append(list, g.stored("queue"))
		case word == "STREAM":
			list = append(list, g.stored("stream"))
		case word == "NAME=VALUE":
			list = append(list, settingNames)
		case word == "ITEMS" || strings.HasPrefix(word, "FILE"):
			list = append(list, files)
		default:
			list = append(list, none)
		}
	}
	if strings.HasSuffix(c.Use, "…") || strings.HasSuffix(c.Use, "…]") || len(list) == 0 {
		return list
	}
	return append(list, none)
}

func files(string) ([]string, cobra.ShellCompDirective) { return nil, cobra.ShellCompDirectiveDefault }
func none(string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveNoFileComp
}

func fixed(all ...string) completer {
	return func(typed string) ([]string, cobra.ShellCompDirective) {
		return beginning(all, typed), cobra.ShellCompDirectiveNoFileComp
	}
}

func beginning(all []string, typed string) []string {
	found := slices.DeleteFunc(slices.Clone(all), func(word string) bool { return !strings.HasPrefix(word, typed) })
	return found[:min(len(found), mostAnswers)]
}

// listOf completes the last of several values with commas.
func listOf(one completer) completer {
	return func(typed string) ([]string, cobra.ShellCompDirective) {
		before := typed[:strings.LastIndexByte(typed, ',')+1]
		found, directive := one(typed[len(before):])
		for i := range found {
			found[i] = before + found[i]
		}
		return found, directive
	}
}

func texts[T ~string](all []T) (list []string) {
	for _, one := range all {
		list = append(list, string(one))
	}
	return list
}

// settingNames completes the options of queue set, and their values where there are few.
func settingNames(typed string) ([]string, cobra.ShellCompDirective) {
	var found []string
	for _, setting := range office.SettingNames() {
		name, values, _ := strings.Cut(setting, "=")
		switch {
		case !strings.HasPrefix(typed, name+"="):
			found = append(found, name+"=\t"+values)
		default: // such as "none, strict or relaxed"
			values = strings.TrimPrefix(strings.ReplaceAll(values, " or ", ", "), "one of ")
			for value := range strings.SplitSeq(strings.ReplaceAll(values, ",,", ",")+", default", ", ") {
				if !strings.ContainsAny(value, " :=") {
					found = append(found, name+"="+value)
				}
			}
		}
	}
	found = beginning(found, typed)
	if strings.Contains(typed, "=") {
		return found, cobra.ShellCompDirectiveNoFileComp
	}
	return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// stored completes the names of one kind in the store that the command would open. IDs are
// completed from the digits by which lists show them, or whole.
func (g *globals) stored(kind string) completer {
	return func(typed string) ([]string, cobra.ShellCompDirective) {
		found := g.hints(kind, typed)
		if len(found) == 0 && strings.Contains(typed, ",") {
			return listOf(func(typed string) ([]string, cobra.ShellCompDirective) { return g.hints(kind, typed), 0 })(typed)
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

func (g *globals) hints(kind, typed string) (found []string) {
	settings, err := config.Load(g.file, g.Env)
	if err != nil {
		return nil
	}
	url, err := config.StoreURL(g.store, settings.Environment())
	if err != nil {
		return nil
	}
	ctx, stop := context.WithTimeout(context.Background(), answerWithin)
	defer stop()
	seen := map[string]bool{}
	_ = app.Hints(ctx, url, kind, func(name, meaning string) { // what was read before an error is good
		if short := name[max(0, len(name)-shownDigits):]; isID(name) && strings.HasPrefix(short, typed) {
			name = short
		}
		if !strings.HasPrefix(name, typed) || seen[name] || len(seen) == mostAnswers || escapeLine(name) != name {
			return
		}
		seen[name] = true
		if meaning != "" {
			name += "\t" + escapeLine(meaning)
		}
		found = append(found, name)
	})
	return found
}

func isID(name string) bool {
	_, err := nixie.ParseID(name)
	return err == nil
}

// filterTerms completes the last term of a filter. If only one key fits it goes on with its values:
// a shell would close the quotes behind a single answer.
func (g *globals) filterTerms(typed string) ([]string, cobra.ShellCompDirective) {
	before := typed[:strings.LastIndexByte(typed, ' ')+1]
	term := typed[len(before):]
	if strings.HasPrefix(term, "-") {
		before, term = before+"-", term[1:]
	}
	key, value, has := strings.Cut(term, ":")
	if !has {
		found := beginning(filter.Keys(), term)
		if len(found) != 1 {
			for i := range found {
				found[i] = before + found[i] + ":"
			}
			return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}
		key = found[0]
	}
	list, _ := listOf(g.termValues(key))(value)
	for i := range list {
		list[i] = before + key + ":" + list[i]
	}
	if len(list) == 0 && !has {
		return []string{before + key + ":"}, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	return list, cobra.ShellCompDirectiveNoFileComp
}

func (g *globals) termValues(key string) completer {
	switch key {
	case "status":
		return fixed(texts(nixie.Statuses())...)
	case "state":
		return fixed(texts(nixie.States())...)
	case "reason":
		return fixed(texts(nixie.Reasons())...)
	case "class":
		return fixed(texts(nixie.Classes())...)
	case "cause":
		return fixed(texts(nixie.Causes())...)
	case "redrivable", "needs_review":
		return fixed("true", "false")
	case "died", "due", "first_failed", "last_failed":
		return fixed(">=now-1h", ">=now-1d", ">=now-7d", "<now-7d")
	case "redrives", "attempts", "deliveries", "crashes":
		return fixed("0", ">=1", ">=2", ">=3")
	case "id", "queue", "type", "stream", "fingerprint", "operation", "key":
		return func(typed string) ([]string, cobra.ShellCompDirective) {
			return slices.DeleteFunc(g.hints(key, typed), func(word string) bool {
				name, _, _ := strings.Cut(word, "\t")
				return strings.ContainsAny(name, " ,:\"()*")
			}), 0
		}
	}
	return none
}

// shellAsks reports whether a script of ours asks what completes a line.
func shellAsks(args []string) bool { return len(args) == 3 && args[0] == askOfBash }
