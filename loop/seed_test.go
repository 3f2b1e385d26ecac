package loop_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// seedBlocks lists the blocks of code in the specification that package loop answers, in their
// order, with the example that does the same. One without an example says what is missing.
var seedBlocks = []struct{ heading, example, missing string }{
	{heading: "Purpose", example: "ExampleMainLoop"},
	{heading: "DLQPolicy", example: "ExampleDLQPolicy"},
	{heading: "DeadLetter", example: "ExampleDeadLetter"},
	{heading: "Configuration", example: "ExampleMainLoop"},
	{heading: "Execution Flow", example: "ExampleMainLoop_flow"},
	{heading: "Implementation", example: "ExampleMainLoop_flow"},
	{heading: "EvalLoop Integration", example: "ExampleEvalLoop_mailbox"},
	{heading: "Basic DLQ Setup", example: "ExampleMainLoop"},
	{heading: "Immediate Dead-Lettering for Specific Errors", example: "ExampleDLQPolicy_include"},
	{heading: "Exclude Transient Errors", example: "ExampleDLQPolicy_exclude"},
	{heading: "Combined Configuration", example: "ExampleDLQPolicy_combined"},
	{heading: "Custom DLQ Policy", example: "ExampleDLQPolicy_errorBudget"},
	{heading: "DLQ Consumer", example: "ExampleDeadLetterConsumer"},
	{heading: "Alert and Log", example: "ExampleDeadLetterConsumer_alert"},
	{heading: "Replay to Source Queue", example: "ExampleDeadLetter_replay"},
	{heading: "Filtered Replay", example: "ExampleDeadLetter_filteredReplay"},
	{heading: "Structured Logging", example: "ExampleMainLoop_log"},
	{heading: "Health Checks", example: "ExampleMailbox_ApproximateCount"},
	{heading: "LoopGroup Integration", missing: "a group that runs loops with one health port and a watchdog"},
	{heading: "DLQConsumer", example: "ExampleDeadLetterConsumer"},
	{heading: "DLQ Queue Naming", example: "ExampleDLQPolicy_naming"},
	{heading: "Retention Policy", example: "ExampleMailbox_retention"},
	{heading: "Avoid DLQ Loops", example: "ExampleDeadLetterConsumer_safe"},
	{heading: "Idempotent Replay", example: "ExampleDeadLetter_replayOnce"},
}

// Each block of the specification has an example that runs, or is known to miss.
func TestSeedBlocks(t *testing.T) {
	var source strings.Builder
	for _, name := range must(filepath.Glob("example*_test.go"))(t) {
		source.Write(must(os.ReadFile(name))(t))
	}
	missing := 0
	for _, b := range seedBlocks {
		switch {
		case b.missing != "":
			missing++
			t.Logf("%-46s missing: %s", b.heading, b.missing)
		case !strings.Contains(source.String(), "func "+b.example+"()"):
			t.Errorf("%s: there is no %s", b.heading, b.example)
		default:
			t.Logf("%-46s %s", b.heading, b.example)
		}
	}
	if len(seedBlocks) != 24 || missing != 1 {
		t.Errorf("%d blocks, %d of them without an example; the specification has 24, and 1 is known to miss", len(seedBlocks), missing)
	}
}
