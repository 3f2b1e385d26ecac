package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTypedIsCompared types documents by the shell of this machine.
func TestTypedIsCompared(t *testing.T) {
	for _, tc := range []struct{ name, text, differ string }{
		{"fine", "~~~console\n$ export A=b\n$ echo $A\nb\n$ false\n$ echo $?\n1\n~~~\n", ""},
		{"typed first", "~~~console norun=\"typed first\"\n$ A=b\n~~~\n~~~console\n$ echo $A\nb\n~~~\n", ""},
		{"here document", "~~~console\n$ cat >f <<'END'\n> one\n> END\n$ cat f\none\n~~~\n", ""},
		{"file", "~~~txt file=\"f\"\none\n~~~\n~~~console\n$ cat f\none\n~~~\n", ""},
		{"other output", "~~~console\n$ echo a\nb\n~~~\n", "printed:\na"},
		{"hidden status", "~~~console\n$ false\n$ echo a\na\n~~~\n", "exit status 1"},
		{"items died", "~~~console\n$ echo '2 items: 1 succeeded, 1 dead'; (exit 5)\n2 items: 1 succeeded, 1 dead\n~~~\n", ""},
		{"no item died", "~~~console\n$ echo '2 items: 2 succeeded'; (exit 5)\n2 items: 2 succeeded\n~~~\n", "exit status 5"},
		{"the shell ends", "~~~console\n$ exit 3\n$ echo a\n~~~\n", "did not come to its end"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			script, commands, err := typed(strings.ReplaceAll(tc.text, "~", "`"), "typed")
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "typed.sh")
			if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "sh", file)
			cmd.Dir = filepath.Dir(file)
			out, _ := cmd.CombinedOutput() // the statuses of the commands are in it
			err = compare(commands, string(out))
			if tc.differ == "" && err != nil || tc.differ != "" && (err == nil || !strings.Contains(err.Error(), tc.differ)) {
				t.Errorf("%v, want %q in\n%s", err, tc.differ, out)
			}
		})
	}
}
