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

	"github.com/nixie-go/nixie/office"
)

// lookAt makes TestPasted keep what commands print: make look
var lookAt = flag.String("look", "", "folder that gets what commands print at 80, 120 and 200 columns")

// looks are commands whose output people read.
var looks = []string{
	"dlq list", "dlq list -o wide", "dlq show order-2", "dlq analyze", "dlq stats", "message list", "message show bill-1",
	"message log bill-1", "queue list", "queue show orders", "queue stats orders", "stats poison", "stats backlog",
	"stats reasons", "stats retries", "stats stalled", "stream list orders", "operation list", "audit list", "audit verify", "doctor",
	"policy profiles", "policy show", "migrate status", "check --max-depth 100", "dlq redrive --all --dry-run",
	"dlq discard order-2 --dry-run",
	"dlq hold order-2 --yes", "--help", "run --help", "dlq --help",
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
		for _, line := range looks {
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
	verb := strings.Fields(line)[0]
	if verb == "dlq" || verb == "message" || verb == "operation" {
		for _, m := range endingOfRow.FindAllStringSubmatch(out, -1) {
			if code, _, errs := d.nixie(verb, "show", m[1]); code != ExitOK {
				d.Errorf("nixie %s shows %s, and show says %d %s", line, m[1], code, errs)
			}
		}
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
