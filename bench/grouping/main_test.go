package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The command scores every way over a folder, and says what is wrong with its flags.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	lines := "LineId,Level,Component,Content,EventId,EventTemplate\n" +
		"1,ERROR,a,order 7 was lost,E1,order <*> was lost\n2,ERROR,b,order 8 was lost,E1,order <*> was lost\n" +
		"3,INFO,a,order 8 was found,E2,order <*> was found\n4,INFO,a,disk failed,E3,disk failed\n"
	if err := os.WriteFile(filepath.Join(dir, "Shop_2k.log_structured.csv"), []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := run(&out, dir, "all"); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	if want := "Shop 3 2 2 groups 1.000 1.000 1.000 2 groups 0.000 0.000 0.000 3 groups 1.000 0.000 0.333"; !strings.Contains(text, want) {
		t.Errorf("the table is %s\nwithout %s", text, want)
	}
	for _, c := range []struct{ dir, lines, says string }{
		{"", "all", "-loghub is missing"}, {dir, "some", "say all, made or kept"}, {t.TempDir(), "all", "has no file"},
	} {
		if err := run(&out, c.dir, c.lines); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("-loghub %q -lines %s: %v", c.dir, c.lines, err)
		}
	}
}
