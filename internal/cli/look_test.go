package cli

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie/office"
)

// lookAt makes TestPasted keep what commands print: make look
var lookAt = flag.String("look", "", "folder that gets what commands print at 80, 120 and 200 columns")

// looks are commands whose output people read.
var looks = []string{
	"dlq list", "dlq list -o wide", "dlq show order-2", "dlq analyze", "dlq stats", "message list", "message show bill-1",
	"message log bill-1", "queue list", "queue show orders", "queue stats orders", "stats poison", "stats backlog",
	"stats reasons", "stats retries", "stats stalled", "stream list orders", "operation list", "audit list", "audit verify", "doctor",
	"policy profiles", "policy show", "policy simulate --exit 69", "migrate status", "migrate validate", "check --max-depth 1",
	"check --max-letters 1", "version", "config print", "config validate", "verify", "prune --dry-run", "dlq watch --once",
	"dlq regroup --dry-run", "dlq redrive --all --dry-run", "dlq discard order-2 --dry-run", "queue purge orders --dry-run",
	"dlq purge --older-than 1h --filter queue:orders --dry-run", "message hold bill-1 --dry-run", "dlq try order-2 -- true",
	"dlq hold order-2 --yes", "queue set orders lease=1m --reason slow", "queue resume billing --reason up",
	"work billing --drain -- true", "--help", "run --help", "dlq --help",
}

var (
	endingOfRow = regexp.MustCompile(`(?m)^([0-9a-f]{8,32})  `)
	keyOfRow    = regexp.MustCompile(`(?m)^[0-9a-f]{8,32}  ([a-z]+-[0-9]+) `)
	commandLine = regexp.MustCompile(`(?m)^ +(?:next +)?(nixie .+?)(?:   #.*)?$`)
	wordOfLine  = regexp.MustCompile(`'[^']*'|[^ ']+`)
)

// Each ID, key and command that a command prints can be typed, at three widths. No table is wider
// than the terminal, and rows of different causes differ.
func TestPasted(t *testing.T) {
	for _, columns := range []int{80, 120, 200} {
		d := newDesk(t)
		d.env["NIXIE_STORE"] = "sqlite://" + d.env["NIXIE_STORE"] // printed commands name it if --store did
		d.answer, d.columns = "no", columns
		if code, _, errs := d.nixie("dlq", "redrive", "order-3", "--force", "--reason", "fixed", "--yes"); code != ExitOK {
			t.Fatalf("redrive: %d %s", code, errs)
		}
		for _, line := range append(helps(), looks...) {
			code, out, errs := d.nixie(strings.Fields(line)...)
			if code == ExitUsage {
				t.Errorf("nixie %s: %s", line, errs)
			}
			d.keep(line, out+errs)
			if wide := widest(out); strings.HasSuffix(line, "list") && wide > columns {
				t.Errorf("nixie %s takes %d columns of %d\n%s", line, wide, columns, out)
			}
			d.paste(line, out)
		}
	}
}

// helps are the commands whose help is kept to be looked at.
func helps() (lines []string) {
	root := newRoot(Streams{Env: func(string) string { return "" }, Now: time.Now})
	for _, c := range visible(root) {
		if *lookAt != "" {
			lines = append(lines, strings.TrimSpace(pathOf(c)+" --help"))
		}
	}
	return lines
}

// visible lists a command and those below it that help shows.
func visible(c *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{c}
	for _, under := range c.Commands() {
		if !under.Hidden {
			all = append(all, visible(under)...)
		}
	}
	return all
}

// keep writes what a command printed to the folder of -look.
func (d *desk) keep(line, text string) {
	d.Helper()
	if *lookAt == "" {
		return
	}
	name := filepath.Join(*lookAt, fmt.Sprint(d.columns), strings.ReplaceAll(line, " ", "_")+".txt")
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		d.Fatal(err)
	}
	if err := os.WriteFile(name, []byte("$ nixie "+line+"\n"+text), 0o644); err != nil {
		d.Fatal(err)
	}
}

// paste types what a command printed.
func (d *desk) paste(line, out string) {
	d.Helper()
	verb, moved := strings.Fields(line)[0], 0
	if verb == "dlq" || verb == "message" || verb == "operation" {
		for _, m := range endingOfRow.FindAllStringSubmatch(out, -1) {
			if code, _, errs := d.nixie(verb, "show", m[1]); code != ExitOK {
				d.Errorf("nixie %s shows %s, and show says %d %s", line, m[1], code, errs)
			}
			if verb == "operation" {
				code, out, errs := d.nixie("dlq", "list", "--filter", "operation:"+m[1])
				if code != ExitOK {
					d.Errorf("nixie %s shows %s, whose letters are\n%d %s%s", line, m[1], code, out, errs)
				}
				moved += len(keyOfRow.FindAllString(out, -1))
			}
		}
	}
	if line == "operation list" && moved != 1 {
		d.Errorf("by the operations of\n%s%d letters were moved, want 1", out, moved)
	}
	for _, m := range keyOfRow.FindAllStringSubmatch(out, -1) {
		if code, _, errs := d.nixie(verb, "show", m[1]); code != ExitOK && !strings.Contains(errs, "names more than one") {
			d.Errorf("nixie %s shows %s, and show says %d %s", line, m[1], code, errs)
		}
	}
	if strings.Contains(line, "--help") {
		return // examples are of files that are not there
	}
	for _, m := range commandLine.FindAllStringSubmatch(out, -1) {
		var args []string
		for _, word := range wordOfLine.FindAllString(m[1], -1)[1:] {
			args = append(args, strings.Trim(word, "'"))
		}
		if code, _, errs := d.nixie(args...); code == ExitUsage || strings.Contains(errs, "no letter") {
			d.Errorf("nixie %s prints %q, which answers %d %s", line, m[1], code, errs)
		}
	}
}

func widest(text string) (most int) {
	for line := range strings.Lines(text) {
		most = max(most, displayWidth(strings.TrimSuffix(line, "\n")))
	}
	return most
}

// Names are whole or left out, IDs have more digits where two agree, and causes that would be cut
// to the same text begin where they differ.
func TestNarrowTables(t *testing.T) {
	var out strings.Builder
	table := newTable(&out, 60, false, heading{text: "ID", id: true}, heading{text: "KEY", flex: true, spare: 1},
		heading{text: "QUEUE", flex: true, spare: 2}, heading{text: "CAUSE", flex: true})
	for _, row := range [][4]string{
		{"01a21758-5920-7000-8000-00a123456789", "order-1", "a-queue-with-a-long-name",
			"command-failed[exit 1]: /usr/local/bin/fetch: no route"},
		{"01a21758-5920-7000-8000-00b123456789", "order-2", "q", "command-failed[exit 1]: /usr/local/bin/fetch: refused"},
		{"01a21758-5920-7000-8000-00b999999999", "order-3", "q", "short"},
	} {
		if err := table.add(cell{text: row[0]}, cell{text: row[1]}, cell{text: row[2]}, cell{text: row[3]}); err != nil {
			t.Fatal(err)
		}
	}
	if err := table.flush(); err != nil {
		t.Fatal(err)
	}
	if want := "ID          KEY      CAUSE\n" +
		"a123456789  order-1  …no route\n" +
		"b123456789  order-2  …refused\n" +
		"b999999999  order-3  short\n"; out.String() != want {
		t.Errorf("have\n%swant\n%s", out.String(), want)
	}
}

// A sentence of ours is broken into lines, in its column, where another text is cut.
func TestSentencesInTables(t *testing.T) {
	var out strings.Builder
	table := newTable(&out, 44, false, heading{text: "REASON"}, heading{text: "LETTERS", right: true},
		heading{text: "ADVICE", flex: true, prose: true})
	for _, row := range [][3]string{{"timeout", "12", "find what is slow, then redrive it"}, {"auth", "3", "renew it"}} {
		if err := table.add(cell{text: row[0]}, cell{text: row[1]}, cell{text: row[2]}); err != nil {
			t.Fatal(err)
		}
	}
	if err := table.flush(); err != nil {
		t.Fatal(err)
	}
	if want := "REASON   LETTERS  ADVICE\n" +
		"timeout       12  find what is slow, then\n" +
		"                  redrive it\n" +
		"auth           3  renew it\n"; out.String() != want {
		t.Errorf("have\n%swant\n%s", out.String(), want)
	}
}

// Help of all commands fits a terminal of 80 columns, but for commands that are copied. It says the
// same as anywhere else.
func TestHelpFits(t *testing.T) {
	copied := regexp.MustCompile(`^ {2,6}(nixie|\S+ .*\| nixie|--step) `)
	none := func(string) string { return "" }
	for _, c := range visible(newRoot(Streams{Env: none, Now: time.Now})) {
		args := append(strings.Fields(pathOf(c)), "--help")
		var whole, narrow strings.Builder
		Main(args, Streams{Out: &whole, Err: &whole, Env: none, Now: time.Now})
		Main(args, Streams{Out: &narrow, Err: &narrow, Env: none, Now: time.Now, OutTTY: true, Columns: 80})
		if strings.Join(strings.Fields(narrow.String()), " ") != strings.Join(strings.Fields(whole.String()), " ") {
			t.Errorf("nixie %s --help says something else at 80 columns:\n%s", pathOf(c), narrow.String())
		}
		for line := range strings.Lines(narrow.String()) {
			if line = strings.TrimSuffix(line, "\n"); displayWidth(line) > 80 && !copied.MatchString(line) {
				t.Errorf("nixie %s --help has a line of %d columns: %s", pathOf(c), displayWidth(line), line)
			}
		}
	}
}

func TestTimesHaveTheZone(t *testing.T) {
	at := office.Timestamp{Time: noon}
	for zone, want := range map[*time.Location]string{time.UTC: "2026-05-04 12:00:00Z",
		time.FixedZone("CEST", 7200): "2026-05-04 14:00:00+02:00"} {
		if have := inZone(at, zone); have != want {
			t.Errorf("in %s it is %s, want %s", zone, have, want)
		}
	}
}

// A cause whose letters died again after a redrive says so.
func TestDiedAgain(t *testing.T) {
	d := newDesk(t)
	if _, out, _ := d.nixie("dlq", "analyze"); strings.Contains(out, "again after redrive") {
		t.Errorf("before a redrive:\n%s", out)
	}
	for _, line := range []string{"dlq redrive order-3 --force --reason fixed --yes",
		"work orders --drain --max-attempts 1 --breaker none -- false"} {
		if code, _, errs := d.nixie(strings.Fields(line)...); code != ExitOK && code != ExitPartly {
			t.Fatalf("nixie %s: %d %s", line, code, errs)
		}
	}
	_, out, _ := d.nixie("dlq", "analyze")
	if !strings.Contains(out, "again after redrive 'fixed' ") {
		t.Errorf("that it died again is not said:\n%s", out)
	}
	if _, out, _ = d.nixie("dlq", "analyze", "-o", "json"); !strings.Contains(out, `"reason": "fixed"`) {
		t.Errorf("JSON does not say it:\n%s", out)
	}
}
