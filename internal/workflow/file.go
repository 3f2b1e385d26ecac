package workflow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/command"
	"github.com/nixie-go/nixie/policy"
)

// File is a workflow file. It does not change once parsed.
type File struct {
	Name   string // as it was given to Parse
	Job    string // name of the job; empty leaves it to the flags
	Mode   Mode
	Env    []command.Field // of all steps, in the order of the file
	Agent  string          // agent_command of the file; empty is none
	Setup  *Phase          // nil is none; so are the others
	Map    *Map            // of mode MapReduce
	Reduce *Phase
	Merge  *Phase
	Steps  []command.Step // of mode Sequence
	Policy Policy
}

// Mode tells what kind of work a file has.
type Mode string

// The modes.
const (
	MapReduce Mode = "mapreduce"
	Sequence  Mode = "standard" // a plain list of steps: a job of one item
)

// Phase is a list of steps that runs once.
type Phase struct {
	At       Position
	Steps    []command.Step
	Timeout  time.Duration // of all of it; 0 is none
	NotAfter bool          // a reduce that must not run while items are dead
}

// Map says which items there are, and what runs for each.
type Map struct {
	At       Position
	Input    string // file with the items, below the worktree of the job
	JSONPath string
	Filter   string // as the file has it
	Where    string // the same as --where has it
	SortBy   string
	Distinct string
	Offset   int
	MaxItems int // 0 is all
	Parallel int // 0 leaves it to the flags
	Steps    []command.Step
	Timeout  time.Duration // of all steps of an item; 0 is none
}

// Policy says what becomes of items that fail. Zero fields leave it to the flags.
type Policy struct {
	OnItemFailure string // dlq, retry, skip, stop or custom:COMMAND
	MaxFailures   int64  // stops the job once this many died; 1 also for continue_on_failure: false
	Threshold     string // a share in percent, as --stop-after has it
	Breaker       policy.BreakerRules
}

// Error holds what is wrong with a file.
type Error struct {
	File  string
	Wrong []Wrong // in the order of the file
}

// Wrong is one thing that is wrong.
type Wrong struct {
	Position
	Text string
}

// Error returns a line for each thing that is wrong.
func (e *Error) Error() string {
	var lines []string
	for _, w := range e.Wrong {
		lines = append(lines, fmt.Sprintf("%s:%d:%d: %s", e.File, w.Line, w.Column, w.Text))
	}
	return strings.Join(lines, "\n")
}

// Unwrap makes it an error of [nixie.CodeInvalid].
func (e *Error) Unwrap() error { return nixie.Errorf(nixie.CodeInvalid, "%s", e.Error()) }

// maxWrong limits the errors that are told at once.
const maxWrong = 20

// Parse reads a workflow file. Agent is the command of claude steps of a file that names none;
// empty is [DefaultAgent]. An error is an [*Error].
func Parse(name string, source []byte, agent string) (*File, error) {
	r := &reader{file: &File{Name: name}, agent: agent, lines: strings.Split(string(source[:min(len(source), MaxSize)]), "\n")}
	root, err := readYAML(source)
	switch {
	case err != nil:
		r.addAt(err)
	case root == nil || root.kind == nothing:
		r.wrong(Position{1, 1}, "the file is empty: write a list of steps, or map with its input and agent_template")
	default:
		r.read(root)
	}
	if len(r.found) == 0 {
		return r.file, nil
	}
	slices.SortStableFunc(r.found, func(a, b Wrong) int { return cmp.Or(a.Line-b.Line, a.Column-b.Column) })
	return nil, &Error{name, r.found[:min(len(r.found), maxWrong)]}
}

// DefaultAgent is the command of claude steps if nothing names another.
const DefaultAgent = "claude -p"
