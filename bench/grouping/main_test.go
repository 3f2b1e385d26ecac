package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nixie-go/nixie/internal/proof/grouping"
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
	if err := run(&out, dir, "", "all"); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	want := "Shop 3 2 2 groups 1.000 1.000 1.000 2 groups 0.000 0.000 0.000 3 groups 1.000 0.000 0.333 2 groups 1.000 1.000 1.000"
	if !strings.Contains(text, want) {
		t.Errorf("the table is %s\nwithout %s", text, want)
	}
	for _, c := range []struct{ dir, lines, says string }{
		{"", "all", "-loghub and -causes are missing"}, {dir, "some", "say all, made or kept"}, {t.TempDir(), "all", "has no file"},
	} {
		if err := run(&out, c.dir, "", c.lines); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("-loghub %q -lines %s: %v", c.dir, c.lines, err)
		}
	}
}

// What tools printed is scored by language, and a file that is no list of causes is refused with
// its line.
func TestRunCauses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "causes.jsonl")
	const begin = `{"tool":"sh","language":"-","cause":"file","variant":1,"exit":2,`
	lines := begin + `"stderr":"cat: anna: No such file\n","item":{"file":"anna"}}` + "\n" +
		begin + `"stderr":"cat: b17: No such file\n","item":{"file":"b17"}}` + "\n"
	if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := run(&out, "", file, "all"); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	if want := "other tools 2 1 1 groups 1.000 1.000 1.000"; !strings.Contains(text, want) {
		t.Errorf("the table is %s\nwithout %s", text, want)
	}
	if err := os.WriteFile(file, []byte(lines+"no cause\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(&out, "", file, "all"); err == nil || !strings.Contains(err.Error(), "causes.jsonl:3: ") {
		t.Errorf("a broken line: %v", err)
	}
}

// Lines that differ in a word join one template; lines of another length or beginning do not.
func TestMiner(t *testing.T) {
	group := newMiner()
	groups := map[string]string{}
	for _, text := range []string{
		"open file orders.csv failed", "open file prices.csv failed", "open file is gone now", "close file orders.csv failed", "",
		"7 items of 9 failed", "8 items of 10 failed",
	} {
		groups[text] = group(grouping.Line{Text: text})
	}
	if groups["open file orders.csv failed"] != groups["open file prices.csv failed"] ||
		groups["7 items of 9 failed"] != groups["8 items of 10 failed"] {
		t.Errorf("one template became two: %v", groups)
	}
	for _, other := range []string{"open file is gone now", "close file orders.csv failed", ""} {
		if groups["open file orders.csv failed"] == groups[other] {
			t.Errorf("%q joined another template: %v", other, groups)
		}
	}
}
