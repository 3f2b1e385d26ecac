package loop_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// seedBlocks lists the blocks of code in the specification that package loop answers, by the line
// where each begins, with the example that does the same.
var seedBlocks = []struct {
	line             int
	heading, example string
}{
	{9, "Purpose", "ExampleMainLoop"},
	{35, "DLQPolicy", "ExampleDLQPolicy"},
	{102, "DeadLetter", "ExampleDeadLetter"},
	{147, "Configuration", "ExampleMainLoop"},
	{164, "Execution Flow", "ExampleMainLoop_flow"},
	{180, "Implementation", "ExampleMainLoop_flow"},
	{247, "EvalLoop Integration", "ExampleEvalLoop_mailbox"},
	{267, "Basic DLQ Setup", "ExampleMainLoop"},
	{294, "Immediate Dead-Lettering for Specific Errors", "ExampleDLQPolicy_include"},
	{311, "Exclude Transient Errors", "ExampleDLQPolicy_exclude"},
	{329, "Combined Configuration", "ExampleDLQPolicy_combined"},
	{343, "Custom DLQ Policy", "ExampleDLQPolicy_errorBudget"},
	{379, "DLQ Consumer", "ExampleDeadLetterConsumer"},
	{400, "Alert and Log", "ExampleDeadLetterConsumer_alert"},
	{432, "Replay to Source Queue", "ExampleDeadLetter_Replay"},
	{457, "Filtered Replay", "ExampleDeadLetter_filteredReplay"},
	{511, "Structured Logging", "ExampleMainLoop_log"},
	{537, "Health Checks", "ExampleGroup_checks"},
	{556, "LoopGroup Integration", "ExampleGroup"},
	{576, "DLQConsumer", "ExampleDeadLetterConsumer"},
	{674, "DLQ Queue Naming", "ExampleDLQPolicy_naming"},
	{688, "Retention Policy", "ExampleMailbox_retention"},
	{700, "Avoid DLQ Loops", "ExampleDeadLetterConsumer_safe"},
	{719, "Idempotent Replay", "ExampleDeadLetter_replayOnce"},
}

// Each block of the specification has an example that runs. With NIXIE_SEEDS, the folder of the
// documents, the list is compared with the specification itself.
func TestSeedBlocks(t *testing.T) {
	var source strings.Builder
	for _, name := range must(filepath.Glob("example*_test.go"))(t) {
		source.Write(must(os.ReadFile(name))(t))
	}
	var listed []string
	for _, b := range seedBlocks {
		listed = append(listed, fmt.Sprintf("%d %s", b.line, b.heading))
		t.Logf("line %3d  %-46s %s", b.line, b.heading, b.example)
		if !strings.Contains(source.String(), "func "+b.example+"()") {
			t.Errorf("%s: there is no %s", b.heading, b.example)
		}
	}
	if folder := os.Getenv("NIXIE_SEEDS"); folder != "" {
		if found := blocksOf(t, folder, "004_*"); !slices.Equal(found, listed) {
			t.Errorf("the specification has the blocks\n%q\nthe list has\n%q", found, listed)
		}
	}
}

// blocksOf returns line and heading of each block of code in a document.
func blocksOf(t *testing.T, folder, pattern string) (blocks []string) {
	t.Helper()
	names := must(filepath.Glob(filepath.Join(folder, pattern)))(t)
	if len(names) != 1 {
		t.Fatalf("%s has %d documents %s", folder, len(names), pattern)
	}
	heading, inside, n := "", false, 0
	for line := range strings.Lines(string(must(os.ReadFile(names[0]))(t))) {
		n++
		switch {
		case strings.HasPrefix(line, "```"):
			if inside = !inside; inside {
				blocks = append(blocks, fmt.Sprintf("%d %s", n, heading))
			}
		case !inside && strings.HasPrefix(line, "#"):
			heading = strings.TrimSpace(strings.TrimLeft(line, "#"))
		}
	}
	return blocks
}
