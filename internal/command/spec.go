package command

import (
	"io"
	"strings"
	"syscall"
	"time"

	"github.com/nixie-go/nixie"
)

// Defaults and bounds of a run.
const (
	DefaultGrace     = 5 * time.Second // from SIGTERM to SIGKILL
	DefaultTailLimit = 64 << 10        // bytes of each output that Run keeps
	MaxTailLimit     = 16 << 20        // the highest TailLimit
	drainWait        = 2 * time.Second // bounds how long an output stays open after the group is gone
)

// Spec describes a command.
type Spec struct {
	Args      []string      // program and its arguments; no shell reads them
	Path      string        // file of the program; empty finds Args[0] with [LookPath]
	Dir       string        // working directory; empty means the caller's
	Env       []string      // complete environment; nil means an empty one
	Stdin     []byte        // the command may end without reading it
	Timeout   time.Duration // until SIGTERM; 0 means none
	Grace     time.Duration // from SIGTERM to SIGKILL; 0 means [DefaultGrace], −1 none
	TailLimit int           // bytes of each output that Run keeps; 0 means [DefaultTailLimit], −1 none
	Stdout    io.Writer     // gets all of stdout as well; a write that blocks blocks the command
	Stderr    io.Writer     // likewise
	Guard     *Guard        // ends the group if this process dies; nil means none

	// Survives lets the command finish if this process dies. It is for short commands whose
	// interruption is worse. Such a command has no guard.
	Survives bool
}

// Result describes the exit of a command and its outputs.
type Result struct {
	Program  string         // the name of its file, without folders
	ExitCode int            // 0…255; 128 + number when a signal ended it
	Signal   syscall.Signal // that ended it; 0 means none
	TimedOut bool           // Run ended it because Timeout had passed
	Canceled bool           // Run ended it because the context had ended
	Detached bool           // a process outside its group kept an output open and still runs
	Stays    bool           // it is a [Resident] that goes on: it has no exit
	Timeout  time.Duration  // of the Spec
	Stdout   Tail
	Stderr   Tail
}

// Tail holds the end of an output, and its beginning when that is not in the end.
type Tail struct {
	Data    []byte // the last bytes, as they came
	Dropped int64  // the number of bytes before them
	Head    []byte // the first bytes, at most 8 KiB; nil if Dropped is 0 or TailLimit is not above 8 KiB
}

func (s *Spec) check() error {
	if len(s.Args) == 0 || s.Args[0] == "" {
		return &StartError{Err: nixie.Errorf(nixie.CodeInvalid, "command is empty: name a program to run")}
	}
	if s.Timeout < 0 {
		return &StartError{s.Args[0], nixie.Errorf(nixie.CodeInvalid, "timeout is %s: give 0 for none or a positive duration", s.Timeout)}
	}
	if s.TailLimit > MaxTailLimit {
		return &StartError{s.Args[0], nixie.Errorf(nixie.CodeLimit, "tail limit is %d bytes, the limit is %d", s.TailLimit, MaxTailLimit)}
	}
	for i, arg := range s.Args {
		if strings.IndexByte(arg, 0) >= 0 {
			return refuse("argument %d holds a NUL byte, which no argument can: read the item from standard input", i)
		}
	}
	for _, variable := range s.Env {
		if strings.IndexByte(variable, 0) >= 0 {
			name, _, _ := strings.Cut(variable, "=")
			return refuse("environment variable %q holds a NUL byte, which none can: read the item from standard input", name)
		}
	}
	return nil
}

func (s *Spec) grace() time.Duration {
	switch {
	case s.Grace == 0:
		return DefaultGrace
	case s.Grace < 0:
		return 0
	}
	return s.Grace
}

func (s *Spec) tailLimit() int {
	switch {
	case s.TailLimit == 0:
		return DefaultTailLimit
	case s.TailLimit < 0:
		return 0
	}
	return s.TailLimit
}

// refuse makes the error of an item that no command can get.
func refuse(format string, args ...any) error {
	return nixie.WithReason(nixie.Permanent(nixie.Errorf(nixie.CodeInvalid, format, args...)), nixie.ReasonValidation)
}
