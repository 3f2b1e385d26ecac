//go:build linux

package cli_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
)

// wrongInput is a row of the table of wrong inputs of all commands. Code and says are written by
// hand: what a person has to be told.
type wrongInput struct {
	name  string
	given func(*workspace) []string // prepares the workspace and returns the command line
	code  int
	says  string // part of the message
}

// line is a command line whose words have no blanks.
func line(text string) func(*workspace) []string { return args(strings.Fields(text)...) }

// made is a command line on a store with a message.
func made(text string) func(*workspace) []string {
	return func(d *workspace) []string {
		d.nixie(0, "enqueue", "orders", "--key", "k", "--body", "{}")
		return strings.Fields(text)
	}
}

// with writes a file and returns a command line.
func with(name, text, line string) func(*workspace) []string {
	return func(d *workspace) []string {
		d.write(name, text)
		return strings.Fields(line)
	}
}

// library matches words of libraries that say nothing to who typed the input.
var library = regexp.MustCompile(
	`strconv\.|parsing "|invalid syntax|value out of range|cannot unmarshal|looking for|` +
		`unexpected E|unexpected end of|invalid argument|parse error on line|bad flag syntax|time: |json: |yaml: |` +
		`pq: |goroutine|panic|<nil>|%!`)

// bare matches a message that begins with the words of a library.
var bare = regexp.MustCompile(`^(open|read|write|mkdir|stat|dial|lookup|EOF|error|exec|fork|tls|x509|failed|FATAL|ERR|sqlite|SQL)\b`)

func wrongInputs() []wrongInput {
	return slices.Concat(wrongFiles(), wrongConfigurations(), wrongNumbers(), wrongWords(), wrongNames(), wrongAddresses(), wrongServers())
}

func wrongFiles() []wrongInput {
	folder := func(line string) func(*workspace) []string {
		return func(d *workspace) []string {
			if err := os.Mkdir(d.path("folder"), 0o700); err != nil {
				d.t.Fatal(err)
			}
			return strings.Fields(line)
		}
	}
	return []wrongInput{
		{"a list that is not there", line("run none.txt -- true"), 1, "none.txt does not exist: check the path of the list"},
		{"a list that is a folder", folder("run folder -- true"), 2, "folder is a directory: name a file"},
		{"a list that is compressed", with("a.gz", "\x1f\x8b\x08\x00", "run a.gz -- true"), 2,
			"the list is compressed with gzip: zcat FILE |"},
		{"half a document", with("a.json", `[{"id":`, "run a.json -- true"), 2, "a.json:1:"},
		{"half a letter", with("a.jsonl", `{"id":`+"\n", "dlq import a.jsonl"), 5, "a.jsonl:1"},
		{"no git", func(d *workspace) []string {
			d.env = append(d.env, "PATH="+d.dir)
			return strings.Fields("map run a.txt -- /bin/true")
		}, 1, "git is not there: install git "},
		{"a map without a repository", line("map run a.txt -- true"), 2, "is not in a git repository: name a folder that is"},
		{"text as letters", line("dlq import a.txt"), 5, "a.txt:1: it is not JSON: invalid character 'a' at byte 1"},
		{"a body that is not there", line("enqueue orders none.txt"), 2, "none.txt does not exist: check its path"},
		{"a body that is a folder", folder("enqueue orders folder"), 2, "folder is a folder: name a file"},
		{"a body below a file", line("enqueue orders a.txt/b"), 2, "a.txt/b does not exist: a folder of its path is a file"},
		{"messages that are a folder", folder("enqueue orders --jsonl folder"), 2, "folder is a folder: name a file"},
		{"a message that is cut", with("a.jsonl", "{\"body\":\n", "enqueue orders --jsonl a.jsonl"), 2,
			"line 1: want a JSON object: the JSON value ends too early: it was cut off"},
		{"a message that is text", line("enqueue orders --jsonl a.txt"), 2,
			"line 1: want a JSON object: it is not JSON: invalid character 'a' at byte 1"},
		{"an export into no folder", made("dlq export --out none/a.jsonl"), 2,
			"--out: folder none does not exist: make it, or name another"},
		{"an export over a file", made("dlq export --out a.txt"), 1, "a.txt is there already: name another file"},
		{"results below a file", line("run a.txt --results a.txt/b -- true"), 2,
			"--results: a.txt cannot be written: not a directory: name another"},
		{"a store that is a text", with("a.db", strings.Repeat("text\n", 1000), "dlq list --store a.db"), 2,
			"a.db is not a Nixie store: name another file"},
		{"a store that is not there", line("dlq list --store none.db"), 1, "none.db: nixie run, enqueue and queue set make one"},
		{"a store that is a folder", folder("dlq list --store sqlite://folder"), 2, "/folder is a folder: name a file in it"},
		{"a store below a file", line("enqueue orders a.txt --store a.txt/s.db"), 1,
			"folder of the store: mkdir a.txt: not a directory: set NIXIE_STORE, or give --store sqlite:///path/to/file"},
		{"a program that is not there", line("work orders -- none"), 2,
			`command "none" cannot be started: program not found: check its name`},
		{"a filter program that is not there", line("dlq watch --exec none"), 2,
			`--exec: command "none" cannot be started: program not found`},
	}
}

func wrongConfigurations() []wrongInput {
	config := func(text string) func(*workspace) []string {
		return func(d *workspace) []string {
			d.write("c.yaml", text)
			return []string{"config", "validate", "--config", "c.yaml"}
		}
	}
	env := func(variable string) func(*workspace) []string {
		return func(d *workspace) []string {
			d.env = append(d.env, variable)
			return []string{"dlq", "list"}
		}
	}
	return []wrongInput{
		{"no configuration", line("config print --config none.yaml"), 2, "configuration none.yaml does not exist: check its path"},
		{"a configuration that is a folder", line("config print --config /"), 2, "configuration / is a folder: name a file"},
		{"YAML with a tab", config("log:\n\tlevel: info\n"), 2,
			"line 2, column 1: a tab cannot begin a value: YAML is indented with spaces"},
		{"YAML that is cut", config("store: ["), 2, "c.yaml, line 1, column 8: this is no YAML: "},
		{"TOML", config("store = \"x\"\n"), 2, "line 1, column 1: want keys with values, as in listen: 127.0.0.1:8321"},
		{"an unknown key", config("stroe: x\n"), 2, `key "stroe" is unknown: did you mean store?`},
		{"a value of another kind", config("actor: 12\n"), 2, "actor: want a text, this is a number: put it in quotes"},
		{"a file with a value that is not there", env("NIXIE_KAFKA_PASSWORD_FILE=none"), 2,
			"NIXIE_KAFKA_PASSWORD_FILE: none does not exist: check its path"},
		{"a word of a variable", env("NIXIE_LOG_LEVEL=loud"), 2,
			`NIXIE_LOG_LEVEL: "loud" is unknown: choose one of debug, info, warn, error`},
		{"a pattern of a variable", env("NIXIE_MASK=("), 2, `mask "(" is no regular expression: `},
		{"a certificate of OTLP", func(d *workspace) []string {
			d.env = append(d.env, "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_CERTIFICATE=none.pem")
			return []string{"run", "a.txt", "--", "true"}
		}, 2, "the variables OTEL_EXPORTER_OTLP_CERTIFICATE, "},
	}
}

func wrongNumbers() []wrongInput {
	return []wrongInput{
		{"a word for a number", line("dlq list --limit x"), 2, `--limit is "x": give a whole number`},
		{"a fraction", line("dlq list --limit 1.5"), 2, `--limit is "1.5": give a whole number`},
		{"nothing for a number", line("dlq list --limit="), 2, `--limit is "": give a whole number`},
		{"a number that is too large", line("dlq list --limit 99999999999999999999"), 2,
			"no number of that size is taken: give a smaller one"},
		{"a negative number", line("dlq list --limit -1"), 2, "--limit is -1: give a positive number, or 0 for all"},
		{"a word for exit codes", line("run a.txt --permanent-exit x -- true"), 2, "give whole numbers with commas between"},
		{"a word for yes or no", line("dlq list --all=maybe"), 2, `--all is "maybe": give true or false, or the flag alone`},
		{"a quote in a list", line(`dlq list --queue a"b`), 2,
			"give names with commas between, and one with a quote or a comma in double quotes"},
		{"no value", line("dlq list --limit"), 2, "--limit has no value: give one after it, or see nixie dlq list --help"},
		{"no value of a letter", line("dlq list -o"), 2, "-o, --output has no value: give one after it"},
		{"a flag that is not there", line("dlq list --limits 3"), 2, "did you mean --limit? or see nixie dlq list --help"},
		{"a letter that is not there", line("dlq list -x"), 2, "see nixie dlq list --help"},
		{"a flag without a name", line("dlq list --=x"), 2, `"--=x" is no flag: see nixie dlq list --help`},
		{"a duration without a unit", line("run a.txt --timeout 5 -- true"), 2,
			`--timeout is "5", no duration: write a number and a unit of `},
		{"a duration that is too long", line("run a.txt --timeout 99999999999h -- true"), 2,
			"too long: the longest duration is about 292 years"},
		{"a negative duration", line("run a.txt --timeout -1s -- true"), 2, "timeout is -1s: give a positive duration, or 0 for none"},
		{"no duration", line("dlq redrive --all --wait=0s --reason x --yes"), 2, "give a duration longer than nothing"},
		{"a word for an age", line("dlq purge --older-than x"), 2, `--older-than: "x" is no duration: write a number and a unit`},
		{"a time that is a word", line("enqueue orders --at tomorrow --body x"), 2,
			`--at is "tomorrow": give a time such as 2026-05-04T12:00:00Z`},
		{"a day that is not there", line("dlq list --since 2026-02-30"), 2, `--since is "2026-02-30": give 2026-01-31, `},
		{"a rate without a time", line("check --max-rate 5"), 2, `--max-rate is "5": give a number in a time, such as 10/5m or 100/h`},
		{"a rate that is a word", line("dlq redrive --all --rate x --reason y --yes"), 2,
			`--rate is "x": give a number a second such as 50`},
		{"a priority out of range", line("enqueue orders --priority 999 --body x"), 2, "priority is 999: give one from -4 to 4"},
		{"a version that is not there", line("migrate up --to 999"), 2, "version 999 is unknown: this program knows 0 to "},
	}
}

func wrongWords() []wrongInput {
	return []wrongInput{
		{"a format", line("dlq list -o yaml"), 2, `-o, --output is "yaml": choose one of table, wide, json, jsonl, csv`},
		{"a colour", line("dlq list --color green"), 2, `--color is "green": choose one of auto, always, never`},
		{"a key of a filter", line("dlq list --filter statuss:open"), 2, `unknown key "statuss" (did you mean status?)`},
		{"an open quote", line(`dlq list --filter text:"open`), 2, "filter, column 6: the quote that begins here is not closed"},
		{"a number of a filter", line("dlq list --filter attempts:x"), 2, `"x" is no whole number: write attempts:3 or attempts:>0`},
		{"a date of a filter", line("dlq list --filter died:>2026-13-45"), 2, `"2026-13-45" is no moment: write 2026-01-31, `},
		{"an expression", line("dlq list --where class=="), 2, `the expression "class==" cannot be read: `},
		{"a pattern of a text", line("work orders --dead-at-once text:( -- true"), 2, "what comes after text: is no regular expression: "},
		{"a group without a name", line("work orders --group-as x -- true"), 2, "give PATTERN=NAME, such as "},
		{"a header", line("enqueue orders --header x --body y"), 2, `--header is "x": write name=value`},
		{"a setting", line("queue set orders lease=5 --reason x"), 2, `setting lease is "5": give a duration such as 30s`},
		{"a breaker", line("work orders --breaker x -- true"), 2, `breaker "x" cannot be read at "x": give none, default, or `},
		{"a cursor", made("dlq list --cursor x"), 2, `cursor "x" is not one of ours: start without a cursor`},
	}
}

func wrongNames() []wrongInput {
	return []wrongInput{
		{"a letter by too few digits", made("dlq show 12"), 1,
			`no letter has the ID, message ID or key "12" (give at least 6 digits of an ID)`},
		{"a letter by the digits of none", made("dlq show 1a2b3c4d"), 1, `"1a2b3c4d": nixie dlq list shows what there is`},
		{"a letter that is a message", made("dlq show k"), 1, `no letter has the ID, message ID or key "k": nixie dlq list shows`},
		{"a log chosen by a text", made("message log --filter text:x"), 2, "chosen by queue:, state: and died: only"},
		{"a log of what waits", made("message log --filter state:queued"), 2, "give succeeded, discarded, canceled or dead"},
		{"a log of one and of all", made("message log none --queue a"), 2, "give one of them"},
		{"a message that is not there", made("message log none"), 1, "nixie message list shows what there is"},
		{"an operation by a word", made("operation show x"), 2, `"x" is no ID of an operation: give the last 6 digits or more`},
		{"an operation by the digits of none", made("operation show 1a2b3c4d"), 1, "nixie operation list shows what there is"},
		{"a queue", made("queue show none"), 1, `no queue is called "none": nixie queue list shows what there is`},
	}
}

// mostWords are the most words of a sentence, as in documents.
const mostWords = 25

// sentenceEnd ends a sentence of ours. What a library or server said follows, word by word.
var sentenceEnd = regexp.MustCompile(`[.;?] |\n|: (failed to|FATAL:|redis:|unable to|dial tcp|lookup ).*`)

// TestWrongInputs runs every row and prints the table. No message is a library's alone: it names
// what was given, and what to do, in short sentences.
func TestWrongInputs(t *testing.T) {
	t.Parallel()
	rows := wrongInputs()
	shown := make([]string, len(rows))
	t.Cleanup(func() {
		var b strings.Builder
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		for i, row := range rows {
			fmt.Fprintf(w, "%s\t%d\t%s\n", row.name, row.code, shown[i])
		}
		if err := w.Flush(); err != nil {
			t.Error(err)
		}
		t.Logf("%d wrong inputs\n%s", len(rows), b.String())
	})
	for i, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			d := newWorkspace(t)
			if err := os.WriteFile(d.path("a.txt"), []byte("a\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			r := d.nixie(row.code, row.given(d)...)
			text := r.out + r.err
			for one := range strings.Lines(text) {
				if strings.Contains(one, row.says) {
					shown[i] = strings.ReplaceAll(strings.TrimPrefix(strings.TrimSpace(one), "nixie: "), d.dir, "$WORK")
				}
			}
			if !strings.Contains(text, row.says) {
				t.Errorf("said %q, want %q", text, row.says)
			}
			if strings.Contains(text, secret) {
				t.Errorf("the password is shown: %q", text)
			}
			for _, sentence := range sentenceEnd.Split(shown[i], -1) {
				if n := len(strings.Fields(sentence)); n > mostWords {
					t.Errorf("a sentence has %d words, want at most %d: %q", n, mostWords, sentence)
				}
			}
			if found := library.FindString(text); found != "" || bare.MatchString(shown[i]) {
				t.Errorf("a library says it (%q): %q", found, text)
			}
		})
	}
}
