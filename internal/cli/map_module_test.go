//go:build unix

package cli_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/nixie-go/nixie/internal/proof"
)

// failsAs are items that fail in each way that a dead letter item knows, until they are
// fixed, by the type of the failure: what they do, and how the step that fails begins.
var failsAs = map[string]struct{ does, step string }{
	"Timeout":                {`sleep 60`, "exec: "},
	"CommandFailed":          {`exit 3`, "exec: "},
	"ValidationFailed":       {`echo "// BAD" >> "$1" && git commit -qam bad`, "shell: ! grep"},
	"WorktreeError":          {`rm .git`, "commit check"},
	"CommitValidationFailed": {`gofmt -w "$1"`, "commit check"},
	"ResourceExhausted":      {`kill -9 $$`, "exec: "},
	"Unknown":                {`echo '{"outcome": "bury", "reason": "unknown"}' > "$NIXIE_VERDICT"`, "exec: "},
	"MergeConflict": {`until git log --format=%s nixie/j | grep -qx "item f0.go"; do sleep 0.1; done
git checkout -q --detach "$BASE" && echo "package other" > f0.go && git commit -qam other`, "merge"},
}

// A Go module is formatted file by file, and items fail in each way there is. Their letters
// say so; fixed and run again they are merged, one commit for each item, and until then
// the checkout is as it was. A run that is killed at three moments ends in the same tree.
func TestMapOfAGoModule(t *testing.T) {
	t.Parallel()
	proof.Run(t, "map-module", func(t *testing.T, seed uint64) int {
		files := proof.Count("map-module")
		rng := rand.New(rand.NewPCG(seed, 0))
		trees := make([]string, 2)
		for i, kills := range []int{0, 3} {
			d := newWorkspace(t)
			d.module(files)
			for range kills {
				d.killAfter(2+rng.IntN(files/4), d.formatting())
				d.verify()
			}
			trees[i] = d.formatted(files)
		}
		if trees[0] != trees[1] {
			t.Errorf("after kills the tree is %s, want %s", trees[1], trees[0])
		}
		return files
	})
}

// module makes a Go module of files that are not formatted, and a list of them.
func (d *workspace) module(files int) {
	d.t.Helper()
	d.repository(1)
	d.write("repo/go.mod", "module example\n\ngo 1.26\n")
	var list, script strings.Builder
	for n := range files {
		name := fmt.Sprintf("f%d.go", n)
		d.write("repo/"+name, fmt.Sprintf("package example\nfunc   F%d( ) int {return  %d}\n", n, n))
		fmt.Fprintln(&list, name)
	}
	fmt.Fprintf(&script, "#!/bin/sh\nset -e\necho \"$1\" >> %s\nif [ ! -e %s ]; then case $1 in\n", d.path("ledger"), d.path("fixed"))
	for kind, fails := range failsAs {
		d.write("repo/"+kind+".go", "package example\nvar  "+kind+"  =  1\n")
		fmt.Fprintln(&list, kind+".go")
		fmt.Fprintf(&script, "%s.go) %s; exit 0 ;;\n", kind, fails.does)
	}
	script.WriteString("esac; fi\ngofmt -w \"$1\" && git commit -qam \"format $1\"\n")
	d.write("files.txt", list.String())
	d.write("format.sh", script.String())
	if err := os.Chmod(d.path("format.sh"), 0o755); err != nil {
		d.t.Fatal(err)
	}
	d.git("add", "-A")
	d.git("commit", "--quiet", "-m", "module")
	d.env = append(d.env, "BASE="+d.git("rev-parse", "HEAD"))
}

// formatting is the command that formats the module.
func (d *workspace) formatting() []string {
	return []string{"map", "run", "files.txt", "--repo", "repo", "--job", "j", "-p", "8", "--no-output", "--max-attempts", "1",
		"--max-crashes", "9",
		"--timeout", "5s", "--commit-required", "--step", "exec: " + d.path("format.sh") +
			" {line}", "--validate", `shell: ! grep -q BAD "$NIXIE_FIELD_LINE"`}
}

// formatted goes on to the end, fixes what is dead, and returns the tree that is merged.
func (d *workspace) formatted(files int) string {
	d.t.Helper()
	base := d.git("rev-parse", "HEAD")
	if said := d.nixie(5, d.formatting()...); !strings.Contains(said.err, fmt.Sprintf("%d succeeded, %d dead", files, len(failsAs))) {
		d.t.Fatal(said.err)
	}
	if d.git("rev-parse", "HEAD") != base || d.git("status", "--porcelain") != "" {
		d.t.Error("the checkout changed before the merge")
	}
	d.failed()
	d.write("fixed", "")
	if said := d.nixie(0, "map", "dlq", "retry", "--force", "--reason", "fixed", "--yes"); !strings.Contains(said.err,
		fmt.Sprintf("%d succeeded", files+len(failsAs))) {
		d.t.Fatal(said.err)
	}
	if said := d.nixie(1, "map", "dlq", "list").err; !strings.Contains(said, "no job has dead letters") {
		d.t.Error(said)
	}
	d.nixie(0, "map", "merge", "--repo", "repo", "--job", "j")
	merges := strings.Split(d.git("log", "--first-parent", "--format=%s", base+"..HEAD"), "\n")
	slices.Sort(merges)
	if n := len(slices.Compact(slices.Clone(merges))); n != files+len(failsAs) || len(merges) != n {
		d.t.Errorf("%d merges of %d items, want one of each of %d", len(merges), n, files+len(failsAs))
	}
	d.noProcess()
	d.verify()
	return d.git("rev-parse", "HEAD^{tree}")
}

// failed checks that every letter says as what its item failed, and where.
func (d *workspace) failed() {
	d.t.Helper()
	items := json.NewDecoder(strings.NewReader(d.nixie(0, "map", "dlq", "export", "--layout", "mapreduce", "--format", "jsonl").out))
	found := 0
	for items.More() {
		var item struct {
			ID       string `json:"item_id"`
			Failures []struct {
				Kind json.RawMessage `json:"error_type"`
				Step string          `json:"step_failed"`
			} `json:"failure_history"`
		}
		if err := items.Decode(&item); err != nil || len(item.Failures) != 1 {
			d.t.Fatalf("%+v, %v", item, err)
		}
		kind, fails := strings.TrimSuffix(item.ID, ".go"), item.Failures[0]
		if want := failsAs[kind]; !strings.Contains(string(fails.Kind), `"`+kind+`"`) || !strings.HasPrefix(fails.Step, want.step) {
			d.t.Errorf("%s is %s in step %q, want step %q", kind, fails.Kind, fails.Step, want.step)
		}
		found++
	}
	if found != len(failsAs) {
		d.t.Fatalf("%d letters, want %d", found, len(failsAs))
	}
}
