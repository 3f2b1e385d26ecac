package command

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// A command dies with its parent, unless it survives by its spec.
func TestOrphans(t *testing.T) {
	for name, survives := range map[string]string{"goes with its parent": "", "survives it": "yes"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			there := func(name string) func() bool {
				return func() bool { _, err := os.Stat(filepath.Join(dir, name)); return err == nil }
			}
			gate := filepath.Join(dir, "gate")
			if err := syscall.Mkfifo(gate, 0o600); err != nil {
				t.Fatal(err)
			}
			parent := exec.Command("/proc/self/exe")
			parent.Dir = dir
			parent.Env = append(os.Environ(), actVariable+"=parent", "COMMAND_TEST_SURVIVES="+survives)
			if err := parent.Start(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the command", there("begun"))
			// Opening the pipe tells whether a process reads it.
			open := func() (*os.File, error) { return os.OpenFile(gate, os.O_WRONLY|syscall.O_NONBLOCK, 0) }
			var held *os.File
			eventually(t, "a reader", func() (ok bool) {
				file, err := open()
				held, ok = file, err == nil
				return ok
			})
			if err := parent.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = parent.Wait()
			if survives == "" {
				eventually(t, "the end of the command", func() bool {
					_, err := held.Write([]byte("x"))
					return errors.Is(err, syscall.EPIPE)
				})
				_ = held.Close()
				if there("done")() {
					t.Error("it went on")
				}
				return
			}
			if _, err := held.Write([]byte("go\n")); err != nil {
				t.Fatal(err)
			}
			_ = held.Close()
			eventually(t, "the end of the command", there("done"))
		})
	}
}
