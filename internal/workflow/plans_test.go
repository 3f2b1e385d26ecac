package workflow_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nixie-go/nixie/internal/workflow"
)

// Each file of testdata has the plan, or the errors, that lie next to it.
func TestPlans(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/plans/*.yaml")
	must(t, err)
	if len(files) < 30 {
		t.Fatalf("%d files", len(files))
	}
	for _, name := range files {
		source, err := os.ReadFile(name)
		must(t, err)
		got := ""
		if f, err := workflow.Parse(filepath.Base(name), source, ""); err != nil {
			got = err.Error() + "\n"
		} else {
			got = f.Plan()
		}
		golden := strings.TrimSuffix(name, ".yaml") + ".plan"
		if *update {
			must(t, os.WriteFile(golden, []byte(got), 0o600))
		}
		want, err := os.ReadFile(golden)
		if err != nil || got != string(want) {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, got, want)
		}
	}
}
