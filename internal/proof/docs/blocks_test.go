package docs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/nixie-go/nixie/internal/itemfile"
)

// block is a piece of code in one of the five specifications, with the test that runs it or does
// the same. A block that no test runs says why.
type block struct {
	number            int // among all blocks of its document
	language, heading string
	test, why         string
}

const (
	row     = "store/postgres.TestFailsOutboxMessages_MarksAsFailedWithError"
	cascade = "store/postgres.TestStreamBasedFailureCascade_ReleasesLaterMessagesInSameStream"
	poison  = "store/postgres.TestPoisonBecomesALetter"
	steps   = "store/postgres.TestStepsResumeWhereTheyStopped"
	views   = "store/postgres.TestSeedSQLAnswersWhatPeopleAsk"
	items   = "internal/letterfile.TestR20_ItemsComeOutAsTheyCameIn"
)

// seedBlocks lists the blocks of JSON, SQL, Python, C# and Java by the number of their document.
var seedBlocks = map[string][]block{
	"000": {
		{4, "json", "DLQ Item Structure", items, ""},
		{5, "json", "Failure Detail Fields", items, ""},
		{6, "json", "Error Types", items, ""},
	},
	"001": {
		{1, "csharp", "Message Processing Status", row, ""},
		{2, "csharp", "Failure Classification", "store/postgres.TestReasonsUnderTheirNames", ""},
		{6, "csharp", "Status=0 Release Pattern", cascade, ""},
		{11, "sql", "Detection Criteria", views, ""},
		{12, "csharp", "Handling Strategies", poison, ""},
		{13, "csharp", "CompletedStatus Field", steps, ""},
		{14, "csharp", "CompletedStatus Field", steps, ""},
		{15, "sql", "SQL Update Logic", row, "a store writes its rows itself: the test looks at what that leaves of each column"},
		{16, "sql", "Key Metrics to Track", views, ""},
		{17, "sql", "Key Metrics to Track", views, ""},
		{18, "sql", "Key Metrics to Track", views, ""},
		{19, "sql", "Key Metrics to Track", views, ""},
		{20, "csharp", "Retry Configuration", "policy.TestR1_EveryFormulaOfTheSources", ""},
		{21, "sql", "Problem: Message Stuck in Retry Loop", views, ""},
		{22, "sql", "Problem: Message Stuck in Retry Loop", views, ""},
		{23, "sql", "Problem: Message Stuck in Retry Loop", views, ""},
		{24, "sql", "Problem: Stream Completely Blocked", views, ""},
		{25, "sql", "Problem: Stream Completely Blocked", views, ""},
		{26, "csharp", "C# Records", steps, ""},
	},
	"002": {
		{1, "java", "1) Processor with retry & DLQ", "examples/channel.TestChannel", ""},
		{2, "java", "2) Redrive tool (read DLQ → republish to original topic safely)", "examples/channel.TestChannel", ""},
	},
	"003": {
		{1, "sql", "Failure Handling", views, ""},
		{2, "python", "Per-attempt retry: transient errors", "internal/cli.TestRunInClaim", ""},
		{3, "python", "Worker-crash recovery: stalled jobs", "internal/cli.TestShow2KilledThreeTimes", ""},
		{4, "python", "Idempotency", "nixie.ExampleOnConflict", ""},
		{5, "sql", "Idempotency", "nixie.ExampleDedupeScope", "an index of a table that is ours: the test looks at when a key is free"},
		{6, "sql", "Poison Jobs", views, ""},
	},
	"004": {
		{1, "python", "Purpose", "loop.ExampleMainLoop", ""},
		{2, "python", "DLQPolicy", "loop.ExampleDLQPolicy", ""},
		{3, "python", "DeadLetter", "loop.ExampleDeadLetter", ""},
		{4, "python", "Configuration", "loop.ExampleMainLoop", ""},
		{6, "python", "Implementation", "loop.ExampleMainLoop_flow", ""},
		{7, "python", "EvalLoop Integration", "loop.ExampleEvalLoop_mailbox", ""},
		{8, "python", "Basic DLQ Setup", "loop.ExampleMainLoop", ""},
		{9, "python", "Immediate Dead-Lettering for Specific Errors", "loop.ExampleDLQPolicy_include", ""},
		{10, "python", "Exclude Transient Errors", "loop.ExampleDLQPolicy_exclude", ""},
		{11, "python", "Combined Configuration", "loop.ExampleDLQPolicy_combined", ""},
		{12, "python", "Custom DLQ Policy", "loop.ExampleDLQPolicy_errorBudget", ""},
		{13, "python", "DLQ Consumer", "loop.ExampleDeadLetterConsumer", ""},
		{14, "python", "Alert and Log", "loop.ExampleDeadLetterConsumer_alert", ""},
		{15, "python", "Replay to Source Queue", "loop.ExampleDeadLetter_Replay", ""},
		{16, "python", "Filtered Replay", "loop.ExampleDeadLetter_filteredReplay", ""},
		{17, "python", "Structured Logging", "loop.ExampleMainLoop_log", ""},
		{18, "python", "Health Checks", "loop.ExampleGroup_checks", ""},
		{19, "python", "LoopGroup Integration", "loop.ExampleGroup", ""},
		{20, "python", "DLQConsumer", "loop.ExampleDeadLetterConsumer", ""},
		{21, "python", "DLQ Queue Naming", "loop.ExampleDLQPolicy_naming", ""},
		{22, "python", "Retention Policy", "loop.ExampleMailbox_retention", ""},
		{23, "python", "Avoid DLQ Loops", "loop.ExampleDeadLetterConsumer_safe", ""},
		{24, "python", "Idempotent Replay", "loop.ExampleDeadLetter_replayOnce", ""},
	},
}

// most limits the blocks that no test runs word by word.
const most = 8

// Each block of code in the specifications has a test. With NIXIE_SEEDS=FOLDER the documents are
// read: their blocks are those of the table, each SQL statement is asked by its test, and the JSON
// goes in and comes out.
func TestSeedBlocks(t *testing.T) {
	t.Parallel()
	root := os.DirFS("../../..")
	tests := NewTests(root)
	rows, reasons := 0, 0
	for _, document := range []string{"000", "001", "002", "003", "004"} {
		for _, b := range seedBlocks[document] {
			rows++
			note := ""
			if b.why != "" {
				reasons++
				note = " (" + b.why + ")"
			}
			t.Logf("%s %2d %-7s%-60s %s%s", document, b.number, b.language, b.heading, b.test, note)
			if missing := tests.Missing(b.test); missing != "" {
				t.Errorf("%s %d, %s: %s", document, b.number, b.heading, missing)
			}
		}
	}
	if rows != 53 || reasons > most {
		t.Errorf("%d rows, of which %d say why no test runs them; the documents have 53 blocks, and at most %d may", rows, reasons, most)
	}
	if folder := os.Getenv("NIXIE_SEEDS"); folder != "" {
		compareSeeds(t, folder, tests)
	}
}

// found is a block as a document has it.
type found struct {
	block
	text string
}

// blockFence is the first or the last line of a block.
var blockFence = regexp.MustCompile("^\\s*```(\\w*)$")

// blocksOf reads the blocks of code of a document that are in one of the languages of the table.
func blocksOf(text string) (all []found) {
	var b *found
	heading, number := "", 0
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		mark := blockFence.FindStringSubmatch(line)
		switch {
		case mark != nil && b == nil:
			number++
			b = &found{block: block{number: number, language: mark[1], heading: heading}}
		case mark != nil:
			switch b.language {
			case "json", "sql", "python", "csharp", "java":
				all = append(all, *b)
			}
			b = nil
		case b != nil:
			b.text += line + "\n"
		case strings.HasPrefix(line, "#"):
			heading = strings.TrimSpace(strings.TrimLeft(line, "#"))
		}
	}
	return all
}

// compareSeeds compares the table with the documents.
func compareSeeds(t *testing.T, folder string, tests *Tests) {
	t.Helper()
	for document, rows := range seedBlocks {
		names, err := filepath.Glob(filepath.Join(folder, document+"_*"))
		if err != nil || len(names) != 1 {
			t.Fatalf("%s: %q, %v", document, names, err)
		}
		text, err := os.ReadFile(names[0])
		if err != nil {
			t.Fatal(err)
		}
		blocks := blocksOf(string(text))
		if len(blocks) != len(rows) {
			t.Errorf("%s has %d blocks, the table %d", document, len(blocks), len(rows))
		}
		for i := range min(len(blocks), len(rows)) {
			is, want := blocks[i], rows[i]
			if is.number != want.number || is.language != want.language || is.heading != want.heading {
				t.Errorf("%s has block %d, %s, below %q; the table has %d, %s, %q", document, is.number, is.language, is.heading,
					want.number, want.language, want.heading)
			}
			if is.language == "sql" && want.why == "" {
				asked(t, &is, want.test, tests)
			}
		}
		if document == "000" && len(blocks) == 3 {
			throughItems(t, blocks[0].text, blocks[1].text, blocks[2].text)
		}
	}
}

var (
	space   = regexp.MustCompile(`\s+`)
	remarks = regexp.MustCompile(`(?m)--.*$`)
)

// asked looks for the statement of a block, up to an ID in it, in the files of its test.
func asked(t *testing.T, b *found, test string, tests *Tests) {
	t.Helper()
	statement := strings.Trim(space.ReplaceAllString(remarks.ReplaceAllString(b.text, ""), " "), " ;")
	statement, _, _ = strings.Cut(statement, "'<")
	folder, _, _ := strings.Cut(test, ".")
	source, err := tests.source(folder)
	if err != nil || !strings.Contains(space.ReplaceAllString(source, " "), statement) {
		t.Errorf("%s does not ask %s: %v", test, statement, err)
	}
}

// jsonComment matches what the documents write into their JSON.
var jsonComment = regexp.MustCompile(`(?m)\s*// \(\d+\)!$|^# .*$`)

// throughItems reads the item of the document, with the other blocks in it, and writes it again.
func throughItems(t *testing.T, item, failure, kind string) {
	t.Helper()
	value := func(text string) (v any) {
		if err := json.Unmarshal([]byte(jsonComment.ReplaceAllString(text, "")), &v); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		return v
	}
	for n := range 3 {
		doc := value(item).(map[string]any)
		first := doc["failure_history"].([]any)[0].(map[string]any)
		switch n {
		case 1:
			doc["failure_history"] = []any{value(failure)}
		case 2:
			first["error_type"] = value(kind)
		}
		raw, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		letter, err := itemfile.Read(raw, "mapreduce/job", "job")
		if err != nil {
			t.Fatal(err)
		}
		written, err := itemfile.ItemOf(&letter)
		if err != nil {
			t.Fatal(err)
		}
		out, err := written.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if again := value(string(out)); !reflect.DeepEqual(again, doc) {
			t.Errorf("block %d came out as %s, want %s", n, bytes.TrimSpace(out), fmt.Sprint(doc))
		}
	}
}
