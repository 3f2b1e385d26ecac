package cli

import (
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nixie-go/nixie/internal/spelling"
)

// synonyms are words of other tools for commands that read, and for redrive, which asks first. A
// word that may destroy is none of them: see otherWords.
var synonyms = map[string][]string{
	"list":    {"ls", "ps", "peek"},
	"show":    {"get", "view", "describe", "cat"},
	"redrive": {"retry", "replay", "requeue", "resubmit"},
}

// addSynonyms gives the commands below c their synonyms. A command of that name goes first.
func addSynonyms(c *cobra.Command) {
	for _, below := range c.Commands() {
		for _, word := range synonyms[below.Name()] {
			if !slices.ContainsFunc(c.Commands(), func(other *cobra.Command) bool { return other.Name() == word }) {
				below.Aliases = append(below.Aliases, word)
			}
		}
		addSynonyms(below)
	}
}

// shortcuts are commands of families that also work without the name of the family.
func shortcuts(g *globals) []*cobra.Command {
	processes := newQueueList(g)
	processes.Use = "ps"
	all := []*cobra.Command{newDLQList(g, nil), newDLQShow(g, nil), newDLQAnalyze(g, nil), newDLQRedrive(g), processes}
	for _, c := range all {
		c.Hidden = true
	}
	return all
}

// differs answers words that destroy something in other systems.
const differs = "this means different things in other systems: nixie dlq discard gives letters up and can be undone, " +
	"nixie dlq purge and nixie queue purge remove for good, nixie dlq hold sets letters aside"

// otherWords are words of other tools that are no commands, with what to type instead.
var otherWords = []struct{ words, instead string }{
	{"delete del rm remove archive clear drop erase destroy flush truncate empty trash obliterate nuke wipe", differs},
	{"send publish push put add produce insert submit dispatch perform", "did you mean nixie enqueue?"},
	{"start worker workers process listen subscribe pull pop dequeue",
		"did you mean nixie work, or nixie consume for the records of a broker?"},
	{"status info top overview metrics count length size depth", "did you mean nixie stats, or nixie queue list?"},
	{"errors failures causes groups summary report", "did you mean nixie dlq analyze?"},
	{"search find grep query filter", "did you mean nixie dlq list --filter 'WORDS'?"},
	{"queues topics subscriptions", "did you mean nixie queue list?"},
	{"jobs job messages tasks task items scheduled delayed busy running active", "did you mean nixie message list?"},
	{"letters dead failed dlqs morgue deadletters", "did you mean nixie dlq list?"},
	{"logs log tail follow", "did you mean nixie dlq watch, or nixie message log ID?"},
	{"history events trail", "did you mean nixie audit list, or nixie message log ID?"},
	{"rescue shovel redeliver reprocess rerun resend republish recover", "did you mean nixie dlq redrive?"},
	{"dashboard flower ui web console server", "did you mean nixie serve?"},
	{"init setup install upgrade", "did you mean nixie migrate up?"},
	{"dump backup save", "did you mean nixie dlq export?"},
	{"load", "did you mean nixie dlq import?"},
	{"stop suspend disable freeze", "did you mean nixie queue pause?"},
	{"unpause enable continue thaw", "did you mean nixie queue resume?"},
	{"kill abort revoke terminate", "did you mean nixie message cancel?"},
	{"edit modify update change", "did you mean nixie dlq redrive --pipe COMMAND, or nixie queue set?"},
	{"park quarantine snooze", "did you mean nixie dlq hold, or nixie message reschedule?"},
	{"parallel xargs exec foreach batch", "did you mean nixie run?"},
	{"promote", "did you mean nixie message retry-now?"},
	{"ack nack acknowledge reject fail complete", "a worker says so by its exit code: did you mean nixie work QUEUE -- COMMAND?"},
	{"cron beat periodic repeat", "there is no timetable here: let cron or a timer of systemd call nixie enqueue"},
	{"create declare", "a queue is made by its first message: did you mean nixie enqueue, or nixie queue set?"},
	{"ping health", "did you mean nixie doctor, or nixie check?"},
}

// noArgs refuses arguments as a mistake of usage, and tells what may have been meant.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usagef("%q is not a command or argument of %s: %ssee %[2]s --help", args[0], cmd.CommandPath(), meant(cmd, args[0]))
}

// meant tells what may have been meant by a word, as the beginning of a sentence.
func meant(cmd *cobra.Command, word string) string {
	if !cmd.HasSubCommands() {
		if cmd.Flags().Lookup("filter") != nil {
			return "did you mean --filter " + quote(word) + "? or "
		}
		return ""
	}
	if answer := answerTo(word); answer != "" {
		return answer
	}
	names := make([]string, 0, 30)
	for _, c := range cmd.Commands() {
		if !c.Hidden {
			names = append(names, c.Name())
		}
	}
	like, distance := nearest(word, names, func(name string) string { return name })
	elsewhere, further := nearest(word, paths(cmd.Root()), func(path string) string { return path[strings.LastIndexByte(path, ' ')+1:] })
	if len(like) == 0 || further < distance {
		like = elsewhere
	}
	if len(like) == 0 {
		return meantByParts(cmd, word)
	}
	return "did you mean " + strings.Join(like[:min(len(like), mostLike)], " or ") + "? or "
}

// answerTo returns what to type instead of a word of another tool, as the beginning of a sentence.
func answerTo(word string) string {
	for _, other := range otherWords {
		if slices.Contains(strings.Fields(other.words), strings.ToLower(word)) {
			return other.instead + either(strings.HasSuffix(other.instead, "?"), " or ", "; ")
		}
	}
	return ""
}

// meantByParts is meant for words such as list-queues, purge_queue and retryJobs.
func meantByParts(cmd *cobra.Command, word string) string {
	word = regexp.MustCompile(`[A-Z]`).ReplaceAllString(word, "-$0")
	parts := strings.FieldsFunc(word, func(r rune) bool { return r == '-' || r == '_' })
	if len(parts) < 2 {
		return ""
	}
	for _, part := range parts {
		if slices.Contains(synonyms["redrive"], strings.ToLower(part)) {
			return "did you mean nixie dlq redrive? or "
		}
		if answer := answerTo(part); answer != "" {
			return answer
		}
	}
	for _, part := range parts {
		if answer := meant(cmd, part); answer != "" {
			return answer
		}
	}
	return ""
}

// mostLike limits the words that are suggested.
const mostLike = 3

// paths returns the commands below c, those of letters first.
func paths(c *cobra.Command) (all []string) {
	for _, below := range c.Commands() {
		if below.Hidden {
			continue
		}
		of := paths(below)
		if !below.HasSubCommands() {
			of = []string{below.CommandPath()}
		}
		if below.Name() == "dlq" {
			all = append(of, all...)
			continue
		}
		all = append(all, of...)
	}
	return all
}

// unknownCommand refuses a word that is no command before its flags are read: they are those of
// another one.
func unknownCommand(root *cobra.Command, args []string) error {
	cmd, rest, err := root.Find(args)
	if err == nil && cmd.Hidden && cmd.Parent() == root && len(rest) > 0 {
		return otherNoun(root, rest[0])
	}
	if err != nil || !cmd.HasSubCommands() {
		return nil
	}
	for i := 0; i < len(rest); i++ {
		word := rest[i]
		switch {
		case word == "--" || strings.HasPrefix(word, "__") || cmd == root && (word == "help" || word == "completion"):
			return nil
		case takesNext(root.PersistentFlags(), word):
			i++
		case !strings.HasPrefix(word, "-"):
			return noArgs(cmd, []string{word})
		}
	}
	return nil
}

// otherNoun refuses to look for a letter that is called as a family of commands. In other tools the
// verb comes first, as in get queues.
func otherNoun(root *cobra.Command, noun string) error {
	for _, name := range [...]string{"queue", "message", "stream", "operation", "mailbox"} {
		if noun == name || noun == name+"s" || noun == name+"es" {
			return usagef("the noun comes first: did you mean %s %s list, or %[1]s %[2]s show?", root.Name(), name)
		}
	}
	return nil
}

// takesNext reports whether a word is one of the flags whose value is the next word.
func takesNext(flags *pflag.FlagSet, word string) bool {
	f := flags.Lookup(strings.TrimPrefix(word, "--"))
	if short, is := strings.CutPrefix(word, "-"); is && len(short) == 1 {
		f = flags.ShorthandLookup(short)
	}
	return f != nil && f.NoOptDefVal == "" && strings.HasPrefix(word, "-")
}

// alias makes another name for a flag, which help does not list.
func alias(fs *pflag.FlagSet, of, name, short string) {
	f := fs.Lookup(of)
	more := *f
	more.Name, more.Shorthand, more.Hidden = name, short, true
	fs.AddFlag(&more)
}

// nearTo returns the names that are spelled most like the one that was typed.
func nearTo(typed string, names []string) []string {
	like, _ := nearest(typed, names, func(name string) string { return name })
	return like[:min(len(like), mostLike)]
}

// nearest returns those of all whose names are spelled most like a word, and how many slips away
// they are. More than two slips, or more than one in three letters, is another word.
func nearest(word string, all []string, name func(string) string) (like []string, slips int) {
	slips = 3
	for _, one := range all {
		n := slipsBetween(strings.ToLower(word), name(one))
		switch {
		case 3*n > len(word) || n > slips || n > 2:
		case n < slips:
			like, slips = []string{one}, n
		default:
			like = append(like, one)
		}
	}
	return like, slips
}

// slipsBetween counts the slips. Half of a name or more, from its beginning, is no slip.
func slipsBetween(word, name string) int {
	if strings.HasPrefix(name, word) && 2*len(word) >= len(name) {
		return 0
	}
	return spelling.Slips(word, name)
}
