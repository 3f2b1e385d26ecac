package cli_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestRunScripts runs the short stories of nixie run.
func TestRunScripts(t *testing.T) {
	t.Parallel()
	runScripts(t, "run", "sqlite", func(env *testscript.Env) string { return "sqlite://" + filepath.Join(env.WorkDir, "s.db") })
}

// runScripts runs those of a folder on the stores of the URLs. In a script the engine is a
// condition.
func runScripts(t *testing.T, folder, engine string, url func(*testscript.Env) string) {
	t.Helper()
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", folder), RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("NIXIE_STORE", url(env))
			env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, "state"))
			env.Setenv("LOOPBACK", loopback())
			return nil
		},
		Condition: func(c string) (bool, error) { return c == engine, nil },
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "kafka": useKafka, "redis": useRedis, "get": get,
		},
	})
}

// exits runs a command that has to end with a code: exits CODE COMMAND ARG…
func exits(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	if err != nil {
		got = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if got != args[0] {
		ts.Fatalf("exit %s, want %s", got, args[0])
	}
}

// What every exit code of a command leads to.
func TestRunExitCodes(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	d.write("codes.txt", "0\n1\n3\n65\n69\n75\n77\n124\n127\n137\n139\nkill\n")
	s := d.run(5, "codes.txt", "--job", "codes", "--max-attempts", "2", "--permanent-exit", "3,4", "--", "sh", "-c",
		`echo "$1" >> ledger; echo "code $1" >&2; echo >&2; [ "$1" = kill ] && kill -9 $$; exit "$1"`, "sh", "{line}")
	if s.Job != "codes" || s.Items != 12 || s.Succeeded != 1 || s.Dead != 11 || s.Discarded != 0 || s.Unfinished != 0 || s.Attempts != 19 ||
		len(s.Groups) != 11 {
		t.Errorf("summary %+v", s)
	}
	want := map[string]string{
		"1": "unknown command-failed 2 exhausted", "3": "permanent command-failed 1 permanent", "65": "permanent validation 1 permanent",
		"69": "transient dependency 2 exhausted", "75": "transient handler 2 exhausted", "137": "transient resource 2 exhausted",
		"kill": "transient resource 2 exhausted", "77": "permanent auth 1 permanent", "124": "transient timeout 2 exhausted",
		"127": "permanent command-failed 1 permanent", "139": "unknown command-failed 2 exhausted",
	}
	for _, l := range d.letters("") {
		l := d.letter(l.ID)
		last := l.History[len(l.History)-1]
		if got := fmt.Sprint(l.Class, " ", l.Reason, " ", len(l.History), " ", l.Cause); got != want[l.Message.Body] {
			t.Errorf("exit %s: %s, want %s", l.Message.Body, got, want[l.Message.Body])
		}
		text := "code " + l.Message.Body
		if l.Message.Body == "kill" {
			text = "killed by signal 9 (killed): code kill"
		}
		if last.Message != text {
			t.Errorf("exit %s: text %q, want %q", l.Message.Body, last.Message, text)
		}
		if len(last.Attachments) != 1 || last.Attachments[0].Name != "stderr" || last.Attachments[0].Text != "code "+l.Message.Body+"\n\n" {
			t.Errorf("exit %s: attachments %+v", l.Message.Body, last.Attachments)
		}
	}
	ran := times(d.ledger("ledger"))
	if ran["0"] != 1 || ran["65"] != 1 || ran["3"] != 1 || ran["75"] != 2 {
		t.Errorf("executions %v", ran)
	}
	if s := d.run(5, "codes.txt", "--job", "codes", "--", "sh", "-c", "echo again >> ledger"); s.Attempts != 0 {
		t.Errorf("the second run started %d commands", s.Attempts)
	}
	d.verify()
}

// What is written to $NIXIE_VERDICT beats the exit code.
func TestRunVerdicts(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	d.write("items.jsonl", strings.Join([]string{
		`{"id":"complete","v":"{\"outcome\":\"complete\"}","exit":9}`,
		`{"id":"discard","v":"{\"outcome\":\"discard\",\"reason\":\"not ours\"}","exit":0}`,
		`{"id":"bury","v":"{\"outcome\":\"bury\",\"reason\":\"auth\",\"message\":\"no key\"}","exit":0}`,
		`{"id":"hold","v":"{\"outcome\":\"hold\",\"reason\":\"looks odd\"}","exit":1}`,
		`{"id":"retry","v":"{\"outcome\":\"retry\",\"reason\":\"throttled\",\"retry_after\":\"10ms\",\"steps\":[\"fetched\"]}","exit":0}`,
		`{"id":"past","v":"{\"outcome\":\"retry\",\"retry_after\":-5}","exit":75}`,
		`{"id":"cut","v":"{\"outcome\":","exit":75}`,
		`{"id":"broken","v":"{\"outcome\":","exit":0}`,
		`{"id":"unknown-field","v":"{\"outcome\":\"complete\",\"x\":1}","exit":0}`,
	}, "\n"))
	s := d.run(5, "items.jsonl", "--max-attempts", "2", "--", "sh", "-c",
		`printf %s "$NIXIE_FIELD_V" > "$NIXIE_VERDICT"; exit "$NIXIE_FIELD_EXIT"`)
	if s.Succeeded != 1 || s.Discarded != 1 || s.Dead != 7 {
		t.Errorf("summary %+v", s)
	}
	for id, want := range map[string]string{
		"bury": "open auth 1 no key", "hold": "review command-failed 1 looks odd", "retry": "open throttled 2 exit status 0",
		"past": "open command-failed 2 exit status 75", "cut": "open handler 2 exit status 75",
	} {
		l := d.letter(id)
		if got := fmt.Sprint(l.Status, " ", l.Reason, " ", len(l.History), " ", l.History[0].Message); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	if l := d.letter("retry"); !slices.Equal(l.History[1].Steps, []string{"fetched"}) {
		t.Errorf("steps %v", l.History[1].Steps)
	}
	for _, id := range []string{"broken", "unknown-field"} {
		if l := d.letter(id); l.Reason != "validation" || !strings.HasPrefix(l.History[0].Message, "verdict of the command: ") {
			t.Errorf("%s: %s %q", id, l.Reason, l.History[0].Message)
		}
	}
	if left, err := filepath.Glob(d.path("state/nixie/verdicts/*")); err != nil || len(left) > 0 {
		t.Errorf("folders of verdicts stay: %v, %v", left, err)
	}
	d.verify()
}

// The item reaches the command whole, by three ways.
func TestRunItemArrives(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	const item = `{"id":"a b", "n":1.50, "deep":{"list":["x","y $(touch canary)"]}, "quote":"'; touch canary #", "é":"ü", "null":null}`
	d.write("items.jsonl", item+"\n")
	d.run(0, "items.jsonl", "--", "sh", "-c", `cat > in; printf '%s\n' "$@" > args; `+
		`env | grep ^NIXIE_ | grep -v -e VERDICT -e HEADERS_FILE -e GUARD -e ^NIXIE_CI_ -e ^NIXIE_TEST_ | sort > env`,
		"sh", "{id}", "{n}", "{deep.list[1]}", "{quote}", "{}", "{{id}}", "--x={3}")
	if got := d.read("in"); got != item {
		t.Errorf("standard input %q", got)
	}
	if got, want := d.read("args"), "a b\n1.50\ny $(touch canary)\n'; touch canary #\n"+item+"\n{id}\n--x={3}\n"; got != want {
		t.Errorf("arguments %q\nwant %q", got, want)
	}
	if got, want := d.read("env"), "NIXIE_ATTEMPT=1\nNIXIE_FIELD_ID=a "+
		"b\nNIXIE_FIELD_N=1.50\nNIXIE_FIELD_NULL=null\nNIXIE_FIELD_QUOTE='; touch canary #\nNIXIE_FIELD__=ü\nNIXIE_GENERATION=1\n"+
		"NIXIE_ITEM_ID=a b\nNIXIE_LEASE=1\nNIXIE_REDRIVES=0\n"; got != want {
		t.Errorf("environment %q\nwant %q", got, want)
	}
	if d.read("canary") != "" {
		t.Error("an item was executed")
	}
}

// Hostile items pass through list, store, command, office and screen, and
// nothing of them is executed or reaches the screen raw.
func TestRunHostileItems(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	canary := d.path("canary")
	var lines []string
	for _, code := range []string{"touch CANARY", ": > CANARY"} {
		for _, form := range []string{"$(%)", "`%`", ";%;", "&& %", "| %", "'$(%)'", "\";%;\"", "$(($(%)))", "<(%)", "-e %", "--exec=%",
			"{%}", "#\x1b[2J%", "\x1b]0;%\x07", "\u202e%", "%\xff", "%%s%n", "../../%", "-rf", "*"} {
			lines = append(lines, strings.ReplaceAll(strings.ReplaceAll(form, "%", code), "CANARY", canary))
		}
	}
	lines = slices.Compact(lines)
	d.write("hostile.txt", strings.Join(lines, "\n")+"\n")
	r := d.nixie(5, "run", "hostile.txt", "--job", "x\u202ey", "--max-attempts", "1", "-p", "4", "--breaker", "none", "--", "sh", "-c",
		`printf '%s\n' "$1" >> got; printf '%s\n' "$1" >&2; exit 3`, "sh", "{line}")
	got := d.ledger("got")
	slices.Sort(got)
	slices.Sort(lines)
	if !slices.Equal(got, lines) {
		t.Errorf("got %q\nwant %q", got, lines)
	}
	again := d.nixie(5, "run", "hostile.txt", "--job", "x\u202ey", "-o", "json", "--", "true")
	if s := d.summary(again); len(s.Groups) < 2 {
		t.Errorf("summary %+v", s)
	}
	for _, shown := range []done{r, again, d.nixie(0, "dlq", "list"), d.nixie(0, "dlq", "analyze")} {
		if strings.ContainsAny(shown.out+shown.err, "\x1b\x07\u202e") {
			t.Errorf("the screen got %q", shown.out+shown.err)
		}
	}
	if found, err := filepath.Glob(d.path("canary*")); err != nil || len(found) > 0 {
		t.Errorf("an item was executed: %v, %v", found, err)
	}
	d.verify()
}

// The commands of a summary can be pasted into a shell as they are.
func TestRunNextCommandsWork(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	d.write("my list's.csv", "id,url\n1,good\n2,bad\n3,worse\n")
	d.write("han dle", "#!/bin/sh\necho \"$1\" >> ledger\n[ \"$1\" = good ] || [ -e fixed ] || { echo no >&2; exit 3; }\n")
	r := d.nixie(5, "run", "my list's.csv", "--id-field", "url", "--skip-bad", "--job", "it's a \"job\"", "--permanent-exit", "3,4", "-p",
		"1", "--timeout", "5s",
		"--", "./han dle", "{url}", "$HOME", "a\tb\n'\u202e", "")
	if !strings.Contains(r.err, "1 succeeded") {
		t.Fatal(r.err)
	}
	d.write("fixed", "")
	_, next, _ := strings.Cut(r.err, "\nNext:\n")
	lines := strings.Split(strings.TrimSpace(next), "\n")
	if len(lines) != 3 {
		t.Fatalf("next commands:\n%s", next)
	}
	for i, want := range []int{0, 0, 0} {
		if got := d.finish(d.command("bash", "-c", lines[i])); got.code != want {
			t.Fatalf("%s: exit %d\n%s%s", lines[i], got.code, got.out, got.err)
		}
	}
	if l := d.letters("status:open,redriving"); len(l) > 0 {
		t.Errorf("letters are left: %+v", l)
	}
}

// A job whose items came from standard input goes on without them.
func TestRunStandardInputGoesOn(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	r := d.nixieIn(`[{"k":"a"},{"k":"b"}]`, 1, "run", "-", "--job", "in", "--format", "json", "--id-field", "k", "-p", "1",
		"--on-item-failure", "stop", "--max-attempts", "1", "--", "sh", "-c", "[ -e ok ]")
	if !strings.Contains(r.err, "1 dead, 1 unfinished") || !strings.Contains(r.err, "nixie: stopped: item a failed: ") {
		t.Fatalf("%s%s", r.out, r.err)
	}
	d.write("ok", "")
	_, next, _ := strings.Cut(r.err, "\nNext:\n")
	next, _, _ = strings.Cut(next, "\n")
	if got := d.finish(d.command("bash", "-c", next)); got.code != 5 || !strings.Contains(got.err, "2 items: 1 succeeded, 1 dead") {
		t.Fatalf("%s: exit %d\n%s%s", next, got.code, got.out, got.err)
	}
}
