package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestFirstCommand runs the first command of the README where it says: in the
// repository itself. It has to show what gofmt lists, and to end with dead letters,
// grouped.
func TestFirstCommand(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	data, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "\n$ ")
	command, _, _ := strings.Cut(rest, "\n")
	home := t.TempDir()
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "NIXIE_STORE=", "XDG_DATA_HOME="+home, "XDG_STATE_HOME="+home)
	out, err := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != 1 && code != 5 { // go run says 1 for every failure
		t.Fatalf("%s: exit %d, %v\n%s", command, code, err, out)
	}
	for _, want := range []string{"store: ", "/src/internal/types/testdata/fixedbugs/issue", "items: ", " succeeded, ", " dead",
		"Why they died:", "Next:\n  nixie dlq analyze"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("output does not say %q:\n%s", want, out)
		}
	}
}
