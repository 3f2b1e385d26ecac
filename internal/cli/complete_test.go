package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// completions are lines as they are typed to their end, with an answer that bash gets for each, and
// one that it must not get.
var completions = []struct{ line, has, hasNot string }{
	{"nixie dl", "dlq", "run"},
	{"cd x; nixie dlq li", "list", "show"},
	{"nixie dlq list -o ", "jsonl", ":files"},
	{"nixie dlq list --filter sta", "status:", "reason:"},
	{"nixie dlq list --filter rea", "reason:timeout", ":files"},
	{"nixie dlq list --filter reason:timeo", "timeout", "reason:timeout"},
	{"nixie dlq list --filter=status:o", "open", "resolved"},
	{"nixie dlq list --filter reason:timeout,depen", "timeout,dependency", ""},
	{`nixie dlq redrive --filter "queue:x rea`, "queue:x reason:timeout", "queue:x reason:"},
	{"nixie dlq redrive --filter 'queue:x -cla", "queue:x -class:permanent", ""},
	{`nixie dlq list --filter "queue:bil`, "queue:billing", "queue:orders"},
	{"nixie dlq list --queue bil", "billing", "orders"},
	{"nixie audit list --event red", "redrive", "discard"},
	{"nixie queue pause ", "billing", ":files"},
	{"nixie queue set mails max-at", "max-attempts=", "max-crashes="},
	{"nixie queue set mails ", ":nospace", ":files"},
	{"nixie queue set mails order=", "strict", "default="},
	{"nixie queue set mails retention=", "default", "a"},
	{"nixie policy simulate --class tr", "transient", "permanent"},
	{"nixie run ", ":files", ""},
	{"nixie run items.txt -- ", ":files", ""},
	{"nixie dlq export --out ", ":files", ""},
	{"nixie dlq analyze ", "", ":files"},
	{"nixie dlq redrive --reason ", "", ":files"},
}

// ask returns what bash gets for a line.
func (d *desk) ask(line string) []string {
	d.Helper()
	code, out, errs := d.nixie(askOfBash, line, strconv.Itoa(len(line)))
	if code != ExitOK || errs != "" {
		d.Errorf("%s: exit code %d, %s", line, code, errs)
	}
	return strings.Split(strings.TrimSuffix(out, "\n"), "\n")
}

func TestCompletion(t *testing.T) {
	d := newDesk(t)
	before := contents(t, filepath.Dir(d.env["NIXIE_STORE"]))
	for _, c := range completions {
		answers := d.ask(c.line)
		if c.has != "" && !slices.Contains(answers, c.has) || c.hasNot != "" && slices.Contains(answers, c.hasNot) {
			t.Errorf("%s: got %q, want %q and not %q", c.line, answers, c.has, c.hasNot)
		}
	}
	for id := range d.statuses() {
		short := id.String()[28:]
		if answers := d.ask("nixie dlq show " + short[:4]); !slices.Contains(answers, short) {
			t.Errorf("%s is not among %q", short, answers)
		}
		if answers := d.ask("nixie dlq show " + id.String()[:20]); !slices.Contains(answers, id.String()) {
			t.Errorf("%s is not among %q", id, answers)
		}
	}
	if after := contents(t, filepath.Dir(d.env["NIXIE_STORE"])); after != before {
		t.Errorf("the store was changed:\n%s\nwas\n%s", after, before)
	}
}

// A store that is not there is not made, and what is no store of ours is left alone and unsaid.
func TestCompletionIsSilent(t *testing.T) {
	d := newDesk(t)
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "text.db"), []byte("no store\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "bad.yaml"), []byte(": ["), 0o600); err != nil {
		t.Fatal(err)
	}
	before := contents(t, folder)
	for _, global := range []string{
		"--store " + folder + "/none.db", "--store " + folder + "/text.db", "--store " + folder, "--store mysql://x", "--store postgres://x.invalid/x",
		"--store itemdir:" + folder, "--config " + folder + "/bad.yaml",
	} {
		if answers := d.ask("nixie " + global + " queue pause "); len(answers) != 1 || answers[0] != "" {
			t.Errorf("%s: got %q", global, answers)
		}
	}
	if after := contents(t, folder); after != before {
		t.Errorf("the folder was changed:\n%s\nwas\n%s", after, before)
	}
}

// contents returns the names and bytes of all files in a folder.
func contents(t *testing.T, folder string) string {
	t.Helper()
	var all strings.Builder
	if err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		all.WriteString(path + "\n")
		if err == nil && !entry.IsDir() {
			data, wrong := os.ReadFile(path)
			all.Write(data)
			err = wrong
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// The shells accept the scripts.
func TestCompletionScripts(t *testing.T) {
	d := newDesk(t)
	for _, shell := range []string{"bash", "zsh", "fish"} {
		t.Run(shell, func(t *testing.T) {
			code, script, errs := d.nixie("completion", shell)
			if code != ExitOK || !strings.Contains(script, shell+" completion for nixie") {
				t.Fatalf("exit code %d: %s%s", code, script, errs)
			}
			path, err := exec.LookPath(shell)
			if err != nil {
				t.Skipf("%s is not installed", shell)
			}
			cmd := exec.CommandContext(t.Context(), path, "-n")
			cmd.Stdin = strings.NewReader(script)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// TestBashCompletes lets bash ask nixie, as it does at a TAB.
func TestBashCompletes(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	const script = `source <(nixie completion bash)
COMP_LINE='nixie dlq redrive --filter "queue:x reason:depe' COMP_POINT=47
_nixie nixie
printf '%s\n' "${COMPREPLY[@]}"`
	cmd := exec.CommandContext(t.Context(), bash, "-c", script)
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "queue:x reason:dependency" {
		t.Errorf("%v: %q", err, out)
	}
}
