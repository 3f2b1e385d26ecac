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
	DefaultTailLimit = 64 << 10        // bytes kept of each output
	MaxTailLimit     = 16 << 20        // bytes that may be asked for
	drainWait        = 2 * time.Second // how long output may stay open after the group is gone
)

// Spec says what to run.
type Spec struct {
	Args      []string      // program and its arguments; no shell reads them
	Path      string        // file of the program; empty looks Args[0] up, see [LookPath]
	Dir       string        // working directory; empty is the caller's
	Env       []string      // complete environment; nil is an empty one
	Stdin     []byte        // fed to the command; it may end without reading it
	Timeout   time.Duration // until SIGTERM; 0 is none
	Grace     time.Duration // from SIGTERM to SIGKILL; 0 is [DefaultGrace], −1 is none
	TailLimit int           // bytes kept of each output; 0 is [DefaultTailLimit], −1 keeps none
	Stdout    io.Writer     // gets all of stdout as well; a write that blocks blocks the command
	Stderr    io.Writer     // likewise
	Guard     *Guard        // ends the group should this process vanish; nil is none

	// Survives lets the command come to its end should this process vanish: it is short,
	// and half of it would be worse than all. It has no guard.
	Survives bool
}

// Result is how a command ended.
type Result struct {
	ExitCode int            // 0…255; 128 + number when a signal ended it
	Signal   syscall.Signal // that ended it; 0 is none
	TimedOut bool           // it was told to end as Timeout had passed
	Canceled bool           // it was told to end as the context had ended
	Detached bool           // a process outside its group kept its output open and was left alone
	Timeout  time.Duration  // that applied
	Stdout   Tail
	Stderr   Tail
}

// Tail is the end of an output.
type Tail struct {
	Data    []byte // the last bytes, as they came
	Dropped int64  // bytes before them
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

// refuse makes the error of an item that cannot be handed to any command.
func refuse(format string, args ...any) error {
	return nixie.WithReason(nixie.Permanent(nixie.Errorf(nixie.CodeInvalid, format, args...)), nixie.ReasonValidation)
}
