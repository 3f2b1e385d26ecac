package loop_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// seedBlocks lists the blocks of code in the specification that package loop answers, in their
// order, with the example that does the same.
var seedBlocks = []struct{ heading, example string }{
	{"Purpose", "ExampleMainLoop"},
	{"DLQPolicy", "ExampleDLQPolicy"},
	{"DeadLetter", "ExampleDeadLetter"},
	{"Configuration", "ExampleMainLoop"},
	{"Execution Flow", "ExampleMainLoop_flow"},
	{"Implementation", "ExampleMainLoop_flow"},
	{"EvalLoop Integration", "ExampleEvalLoop_mailbox"},
	{"Basic DLQ Setup", "ExampleMainLoop"},
	{"Immediate Dead-Lettering for Specific Errors", "ExampleDLQPolicy_include"},
	{"Exclude Transient Errors", "ExampleDLQPolicy_exclude"},
	{"Combined Configuration", "ExampleDLQPolicy_combined"},
	{"Custom DLQ Policy", "ExampleDLQPolicy_errorBudget"},
	{"DLQ Consumer", "ExampleDeadLetterConsumer"},
	{"Alert and Log", "ExampleDeadLetterConsumer_alert"},
	{"Replay to Source Queue", "ExampleDeadLetter_replay"},
	{"Filtered Replay", "ExampleDeadLetter_filteredReplay"},
	{"Structured Logging", "ExampleMainLoop_log"},
	{"Health Checks", "ExampleMailbox_ApproximateCount"},
	{"LoopGroup Integration", "ExampleGroup"},
	{"DLQConsumer", "ExampleDeadLetterConsumer"},
	{"DLQ Queue Naming", "ExampleDLQPolicy_naming"},
	{"Retention Policy", "ExampleMailbox_retention"},
	{"Avoid DLQ Loops", "ExampleDeadLetterConsumer_safe"},
	{"Idempotent Replay", "ExampleDeadLetter_replayOnce"},
}

// Each block of the specification has an example that runs.
func TestSeedBlocks(t *testing.T) {
	var source strings.Builder
	for _, name := range must(filepath.Glob("example*_test.go"))(t) {
		source.Write(must(os.ReadFile(name))(t))
	}
	for _, b := range seedBlocks {
		t.Logf("%-46s %s", b.heading, b.example)
		if !strings.Contains(source.String(), "func "+b.example+"()") {
			t.Errorf("%s: there is no %s", b.heading, b.example)
		}
	}
	if len(seedBlocks) != 24 {
		t.Errorf("%d blocks; the specification has 24", len(seedBlocks))
	}
}
