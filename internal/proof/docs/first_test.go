package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestFirst runs the first command of the README where it says: in the repository itself. It prints
// what the README shows, and each command that the README shows can be typed.
func TestFirst(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	data, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := Blocks(string(data))
	if err != nil {
		t.Fatal(err)
	}
	const command = "$ make first\n"
	i := slices.IndexFunc(blocks, func(b Block) bool { return strings.HasPrefix(b.Text, command) })
	if i < 0 {
		t.Fatalf("no block of the README begins with %q", command)
	}
	cmd := exec.Command("make", "--no-print-directory", "first")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "NIXIE_STORE=", "XDG_DATA_HOME="+t.TempDir(), "MAKEFLAGS=", "MFLAGS=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("make first: %v\n%s", err, out)
	}
	if shown := strings.TrimPrefix(blocks[i].Text, command); !Matches(shown, string(out)) {
		t.Errorf("shown:\n%s\nwritten:\n%s", shown, out)
	}
}
