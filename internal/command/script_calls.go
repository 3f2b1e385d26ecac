package command

import (
	"slices"
	"strings"

	posix "mvdan.cc/sh/v3/syntax"
)

// codeOf begins the reason why a value is refused that a program would carry out.
const codeOf = "code of "

// builtins carry out their arguments, or compute in them as a bash does.
var builtins = []string{"eval", "trap", ".", "source", "let", "[[", "declare", "typeset"}

// interpreters carry out the argument after an option that ends so; an empty one is any argument.
var interpreters = map[string]string{
	"sh": "c", "bash": "c", "dash": "c", "ash": "c", "ksh": "c", "mksh": "c", "zsh": "c", "su": "c", "ssh": "",
	"python": "c", "python3": "c", "perl": "e", "ruby": "e", "node": "e", "php": "r",
}

// editors have a program among their arguments, in which a value would be a part of it.
var editors = []string{"awk", "gawk", "mawk", "nawk", "sed", "jq", "ed", "ex"}

// lookAtCall refuses values that would be a program or a script.
func (s *scriptReader) lookAtCall(call *posix.CallExpr, refuse func(int, string)) {
	if len(call.Args) == 0 {
		return
	}
	for _, i := range s.usesIn(call.Args[0].Pos(), call.Args[0].End()) {
		refuse(i, "would choose the program that runs")
	}
	for at, word := range call.Args { // another program may start it, as timeout and env do
		program := word.Lit()
		program = program[strings.LastIndexByte(program, '/')+1:]
		option, interprets := interpreters[program]
		var scripts []*posix.Word
		switch {
		case at == 0 && slices.Contains(builtins, program):
			scripts = call.Args[1:]
		case interprets:
			scripts = scriptsOf(call.Args[at+1:], option)
		case slices.Contains(editors, program):
			scripts = s.programsOf(call.Args[at+1:])
		}
		for _, w := range scripts {
			for _, i := range s.usesIn(w.Pos(), w.End()) {
				refuse(i, codeOf+program)
			}
		}
	}
}

// scriptsOf returns the arguments that an interpreter carries out.
func scriptsOf(args []*posix.Word, option string) []*posix.Word {
	if option == "" {
		return args
	}
	at := slices.IndexFunc(args, func(w *posix.Word) bool {
		return strings.HasPrefix(w.Lit(), "-") && strings.HasSuffix(w.Lit(), option)
	})
	if at < 0 {
		return nil
	}
	return args[at+1 : min(at+2, len(args))]
}

// programsOf returns the arguments of an editor that may be its program: the first that is no
// option, the one after -e, and those that hold more than a value. What -v and --arg set is data.
func (s *scriptReader) programsOf(args []*posix.Word) (programs []*posix.Word) {
	first := true
	for i, w := range args {
		before := ""
		if i > 0 {
			before = args[i-1].Lit()
		}
		named := i > 1 && strings.HasPrefix(args[i-2].Lit(), "--arg")
		switch isOption := strings.HasPrefix(w.Lit(), "-"); {
		case before == "-v", strings.HasPrefix(before, "--arg"), named:
		case first && !isOption, before == "-e", !s.isValue(w):
			first = first && isOption
			programs = append(programs, w)
		}
	}
	return programs
}

// isValue reports whether an argument is one value and nothing else.
func (s *scriptReader) isValue(w *posix.Word) bool {
	uses := s.usesIn(w.Pos(), w.End())
	if len(uses) != 1 {
		return len(uses) == 0
	}
	value := s.uses[uses[0]].words()
	text := s.text[w.Pos().Offset():w.End().Offset()]
	return text == value || text == `"`+value+`"` || text == "'"+value+"'"
}
