//go:build unix

package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/proof/hostile"
)

// Items that attack: each of 200 goes through a step of each form, as data and as the name
// of an item, and does nothing but what the steps do with it. Canaries lie in the repository,
// in each worktree and outside.
func TestR56_MapOfHostileItems(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	d.repository(1)
	d.write("repo/canary", "alive\n")
	d.write("repo/take", `#!/bin/sh
printf %s "$1" > "got-$2"
`)
	if err := os.Chmod(d.path("repo/take"), 0o755); err != nil {
		t.Fatal(err)
	}
	d.git("add", "-A")
	d.git("commit", "--quiet", "-m", "second")
	d.write("alive", "alive\n")

	values := d.hostileItems()
	before := d.outside()
	d.nixie(0, "map", "run", "hostile.jsonl", "--repo", "repo", "--job", "j", "--no-output", "--merge", "--commit-required",
		"--step", "exec: ./take {v} {n}",
		"--step", `shell: printf %s "$NIXIE_FIELD_V" | cmp - "got-$NIXIE_FIELD_N" && cmp - "$NIXIE_ITEM_FILE"`,
		"--step", `shell: grep -q alive canary && git add "got-$NIXIE_FIELD_N" && git commit -qm "item $NIXIE_ITEM_ID"`,
		"--validate", `shell: [ -z "$(git status --porcelain)" ] && [ "$(git diff --name-only HEAD~1)" = "got-$NIXIE_FIELD_N" ]`)
	for n, value := range values {
		if got := d.read(fmt.Sprint("repo/got-", n)); got != value {
			t.Errorf("value %d: %q became %q", n, value, got)
		}
	}
	if n := d.git("rev-list", "--count", "--first-parent", "HEAD~"+fmt.Sprint(len(values))+"..HEAD"); n != fmt.Sprint(len(values)) {
		t.Errorf("%s merges", n)
	}
	entries, err := os.ReadDir(d.path("repo"))
	if want := len(values) + len([]string{".git", "canary", "f0", "take"}); err != nil || len(entries) != want {
		t.Errorf("%d files in the repository, want %d: %v", len(entries), want, err)
	}
	d.nixie(0, "map", "clean", "--repo", "repo", "--job", "j")
	if after := d.outside(); after != before {
		t.Errorf("outside: %s\nbefore: %s", after, before)
	}
	if d.read("alive") != "alive\n" || d.read("repo/canary") != "alive\n" {
		t.Error("a canary is dead")
	}
	t.Logf("%d items, two forms, 0 touched", len(values))
	d.noProcess()
}

// hostileItems writes a list of items of which each has a hostile field, and where it can be
// one a hostile ID.
func (d *workspace) hostileItems() (values []string) {
	d.t.Helper()
	var list strings.Builder
	for _, value := range hostile.Values(d.path("touched")) {
		if !utf8.ValidString(value) {
			continue // no JSON has it
		}
		item := map[string]any{"v": value, "n": len(values)}
		if value != "" && nixie.CheckName("id", value) == nil {
			item["id"] = value
		}
		line, err := json.Marshal(item)
		if err != nil {
			d.t.Fatal(err)
		}
		list.Write(append(line, '\n'))
		values = append(values, value)
	}
	if len(values) < 200 {
		d.t.Fatalf("only %d values", len(values))
	}
	d.write("hostile.jsonl", list.String())
	return values
}

// outside lists the files of the workspace that are none of Nixie's or git's.
func (d *workspace) outside() string {
	d.t.Helper()
	var names []string
	err := filepath.WalkDir(d.dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.IsDir() && (path == d.path("repo") || path == d.path("state")) {
			return filepath.SkipDir
		}
		if name := strings.TrimPrefix(path, d.dir); !strings.HasPrefix(name, "/nixie.db") {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return strings.Join(names, "\n")
}
