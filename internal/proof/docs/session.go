package docs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// commandTimeout bounds one command of a document.
const commandTimeout = 2 * time.Minute

// pipeGrace bounds how long a command's children may hold its output open after it
// ended.
const pipeGrace = 5 * time.Second

// Session runs the commands of one document in one folder.
type Session struct {
	root   string // of all that the session writes: home, data, work
	path   string // folders of programs, before those of the machine
	status int    // exit status of the last command
	env    []string
}

// NewSession makes a session with its folders below root, which is empty. Bin
// is a folder of programs that the commands find first.
func NewSession(root, bin string) (*Session, error) {
	s := &Session{root: root, path: bin + string(os.PathListSeparator) + os.Getenv("PATH")}
	for _, folder := range []string{"home", "work", "tmp"} {
		if err := os.Mkdir(filepath.Join(root, folder), 0o700); err != nil {
			return nil, err
		}
	}
	return s, s.write("cwd", s.work())
}

// Set gives the commands one more variable.
func (s *Session) Set(name, value string) { s.env = append(s.env, name+"="+value) }

// Folder returns the folder in which the next command runs.
func (s *Session) Folder() (string, error) {
	cwd, err := os.ReadFile(filepath.Join(s.root, "cwd"))
	return strings.TrimSpace(string(cwd)), err
}

func (s *Session) work() string { return filepath.Join(s.root, "work") }

func (s *Session) write(name, text string) error {
	return os.WriteFile(filepath.Join(s.root, name), []byte(text), 0o600)
}

// WriteFile makes a file that a document shows, in the session's work folder.
func (s *Session) WriteFile(name, text string) error {
	if !filepath.IsLocal(name) {
		return fmt.Errorf("file %q leaves the folder of the document", name)
	}
	full := filepath.Join(s.work(), name)
	if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
		return err
	}
	return os.WriteFile(full, []byte(text+"\n"), 0o600)
}

// Run runs one command to its end and returns what it wrote and its status.
func (s *Session) Run(ctx context.Context, command string) (string, int, error) {
	cwd, err := s.Folder()
	if err != nil {
		return "", 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	script := fmt.Sprintf("trap 'pwd >\"$DOCS_CWD\"' EXIT\n(exit %d)\n%s\n", s.status, command)
	cmd := exec.CommandContext(ctx, "sh", "-c", script)
	cmd.Dir = cwd
	cmd.WaitDelay = pipeGrace
	cmd.Env = append([]string{
		"PATH=" + s.path, "HOME=" + filepath.Join(s.root, "home"), "TMPDIR=" + filepath.Join(s.root, "tmp"),
		"DOCS_CWD=" + filepath.Join(s.root, "cwd"), "LANG=C.UTF-8", "NO_COLOR=1", "TERM=dumb", "TZ=UTC", "USER=reader",
	}, s.env...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return string(out), 0, fmt.Errorf("not finished after %v: %w", commandTimeout, ctx.Err())
	case err != nil && !errors.As(err, &exit):
		return string(out), 0, err
	}
	s.status = cmd.ProcessState.ExitCode()
	return string(out), s.status, nil
}

// Play runs every transcript of a document in order and returns what was not as
// shown, with the line; it goes on after a difference, so that one run shows
// all. The error is for what kept it from running.
func (s *Session) Play(ctx context.Context, text string) ([]string, error) {
	blocks, err := Blocks(text)
	if err != nil {
		return nil, err
	}
	var differ []string
	for _, b := range blocks {
		if b.File != "" {
			if err := s.WriteFile(b.File, b.Text); err != nil {
				return nil, fmt.Errorf("line %d: %w", b.Line, err)
			}
		}
		commands, err := b.Commands()
		if err != nil {
			return nil, err
		}
		for i, c := range commands {
			out, status, err := s.Run(ctx, c.Text)
			if err != nil {
				return nil, fmt.Errorf("line %d: $ %s: %w\n%s", c.Line, c.Text, err, out)
			}
			statusShown := i+1 < len(commands) && strings.HasPrefix(commands[i+1].Text, "echo $?")
			if status != 0 && !statusShown {
				differ = append(differ, fmt.Sprintf("line %d: $ %s: exit status %d, and no \"echo $?\" shows it\n%s", c.Line, c.Text,
					status, out))
			}
			if c.Output != "" && !Matches(c.Output, out) {
				differ = append(differ, fmt.Sprintf("line %d: $ %s\nshown:\n%s\nwritten:\n%s", c.Line, c.Text, c.Output, out))
			}
		}
	}
	return differ, nil
}

// Transcribed reports whether a document has a command that is run.
func Transcribed(text string) bool {
	blocks, err := Blocks(text)
	if err != nil {
		return true // Play says what is wrong
	}
	for _, b := range blocks {
		if commands, err := b.Commands(); err != nil || len(commands) > 0 {
			return true
		}
	}
	return false
}
