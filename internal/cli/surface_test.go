package cli

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestSurface prints every command, flag and JSON field of the program with a
// story that exercises it: a script under testdata, or a golden file with
// commands. What has none is a failure, and so is a required name that is not
// there. Nothing is entered anywhere: stories are found by reading them.
func TestSurface(t *testing.T) {
	root := surfaceRoot()
	told := readStories(t, root)
	s := &surface{out: io.Discard}
	if testing.Verbose() {
		s.out = os.Stdout
	}
	s.walk(root, told)
	s.views(t, told)
	s.required(root, told)
	for _, name := range s.missing {
		t.Errorf("%s: no story shows it, or it is not there", name)
	}
}

// R59: every command is shown in its form for people and in a form for programs,
// and what it prints is compared.
func TestR59_EveryCommandForPeopleAndPrograms(t *testing.T) {
	root := surfaceRoot()
	told := readStories(t, root)
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		path := pathOf(c)
		if c.Runnable() && !c.HasSubCommands() {
			for _, forms := range [...][]string{{asTable, asWide}, {asJSON, asJSONL}} {
				if !slices.ContainsFunc(forms, func(form string) bool { return len(told.forms[path+" "+form]) > 0 }) {
					t.Errorf("no story compares what %s prints with -o %s", path, strings.Join(forms, " or "))
				}
			}
		}
		for _, below := range c.Commands() {
			if below.Name() != "help" && below.Name() != "completion" && !below.Hidden {
				walk(below)
			}
		}
	}
	walk(root)
}

// surfaceRoot is the tree with what cobra adds to it.
func surfaceRoot() *cobra.Command {
	root := newRoot(Streams{Env: func(string) string { return "" }, Now: time.Now})
	root.InitDefaultCompletionCmd()
	return root
}

// surface collects the names without a story.
type surface struct {
	out     io.Writer
	missing []string
}

// line prints one thing and its stories.
func (s *surface) line(kind, name string, stories []string) {
	if len(stories) == 0 {
		s.missing = append(s.missing, kind+" "+name)
		fmt.Fprintf(s.out, "%-8s %-48s MISSING\n", kind, name)
		return
	}
	more := ""
	if len(stories) > 1 {
		more = fmt.Sprintf(" and %d more", len(stories)-1)
	}
	fmt.Fprintf(s.out, "%-8s %-48s %s%s\n", kind, name, stories[0], more)
}

// walk prints the commands below c, their flags, and the fields of what they print.
func (s *surface) walk(c *cobra.Command, told *stories) {
	path := pathOf(c)
	if c.Runnable() && !c.HasSubCommands() {
		s.line("command", path, told.commands[path])
	}
	c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" && !f.Hidden {
			s.line("flag", path+" --"+f.Name, told.flags[path+" --"+f.Name])
		}
	})
	c.PersistentFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			s.line("flag", "(every command) --"+f.Name, told.everywhere["--"+f.Name])
		}
	})
	for _, field := range slices.Sorted(maps.Keys(told.fields[path])) {
		s.line("field", path+" ."+field, told.fields[path][field])
	}
	for _, below := range c.Commands() {
		if below.Name() != "help" && !below.Hidden {
			s.walk(below, told)
		}
	}
}

// views prints the members of every struct that is printed.
func (s *surface) views(t *testing.T, told *stories) {
	for _, name := range viewMembers(t) {
		member := name[strings.LastIndexByte(name, '.')+1:]
		s.line("member", name, told.members[member])
	}
}

// required looks the names up that have been promised.
func (s *surface) required(root *cobra.Command, told *stories) {
	for _, promise := range promises() {
		path, rest, _ := strings.Cut(promise, ":")
		words := strings.Fields(path)
		c, left, err := root.Find(words)
		if err != nil || len(left) > 0 || c == root {
			s.line("required", path, nil)
			continue
		}
		for _, name := range strings.Fields(rest) {
			switch {
			case strings.HasPrefix(name, "--"):
				if c.Flag(name[2:]) == nil {
					s.line("required", path+" "+name, nil)
				}
			case len(told.fields[path][name]) == 0:
				s.line("required", path+" ."+name, nil)
			}
		}
	}
}
