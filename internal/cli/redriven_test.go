//go:build unix

package cli_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie/internal/proof/testservers"
)

// knows is a command that appends to a file what it knows of a redrive, and fails before the first.
const knows = `printf '%s,%s,%s,%s,%s\n' "$NIXIE_GENERATION" "$NIXIE_REDRIVES" "${NIXIE_OPERATION-none}" ` +
	`"${NIXIE_FIRST_FAILED_AT-none}" "$(cat "${NIXIE_HEADERS_FILE:-/dev/null}")" >> "$KNOWS"; [ "$NIXIE_REDRIVES" -gt 0 ]`

// TestCommandsKnowTheRedrive runs a command of each kind before and after a redrive.
func TestCommandsKnowTheRedrive(t *testing.T) {
	t.Parallel()
	const item = `[{"name":"item-line","value":"1"}]`
	const mapped = `[{"name":"item-line","value":"1"},{"name":"repository","value":"REPOSITORY"}]`
	for name, way := range map[string]struct {
		headers string
		begin   func(d *workspace) []string
	}{
		"work": {`[{"name":"lang","value":"en"},{"name":"lang","value":"de \"x\""}]`, func(d *workspace) []string {
			d.nixie(0, "enqueue", "q", "--key", "m", "--header", "lang=en", "--header", `lang=de "x"`)
			return []string{"work", "q", "--drain", "--max-attempts", "1", "--", "sh", "-c", knows}
		}},
		"work without headers": {"", func(d *workspace) []string {
			d.nixie(0, "enqueue", "q", "--key", "m")
			return []string{"work", "q", "--drain", "--max-attempts", "1", "--", "sh", "-c", knows}
		}},
		"run": {item, func(d *workspace) []string {
			d.write("items.txt", "one\n")
			return []string{"run", "items.txt", "--job", "j", "--max-attempts", "1", "--no-output", "--", "sh", "-c", knows}
		}},
		"map": {mapped, func(d *workspace) []string {
			d.repository(1)
			return mapRun([]string{"--max-attempts", "1"}, knows)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newWorkspace(t)
			d.env = append(d.env, "KNOWS="+d.path("knows"), "NIXIE_OPERATION=old", "NIXIE_FIRST_FAILED_AT=old")
			args := way.begin(d)
			d.nixie(5, args...)
			if name == "work" {
				d.nixie(0, "dlq", "try", "--filter", "queue:q", "--", "sh", "-c", knows)
			}
			var moved struct{ Operation string }
			if err := json.Unmarshal([]byte(d.nixie(0, "dlq", "redrive", "--all", "--reason", "fixed", "--yes", "-o", "json").out),
				&moved); err != nil {
				t.Fatal(err)
			}
			d.nixie(0, args...)
			got := d.ledger("knows")
			if name == "work" { // a try before the redrive told the same, but for the operation
				if !strings.HasPrefix(got[1], "2,1,none,") || strings.ReplaceAll(got[2], moved.Operation, "none") != got[1] {
					t.Errorf("tried: %q", got)
				}
				got = slices.Delete(got, 1, 2)
			}
			failed, err := time.Parse(time.RFC3339Nano, strings.Split(got[len(got)-1], ",")[3])
			headers := strings.ReplaceAll(way.headers, "REPOSITORY", d.path("repo/.git"))
			want := []string{"1,0,none,none," + headers, "2,1," + moved.Operation + "," + failed.Format(time.RFC3339Nano) + "," + headers}
			if strings.Join(got, "\n") != strings.Join(want, "\n") || err != nil || time.Since(failed) > time.Hour {
				t.Errorf("%q, want %q: %v", got, want, err)
			}
			d.verify()
		})
	}
}

// TestConsumersKnowTheRedrive does the same for records of a topic.
func TestConsumersKnowTheRedrive(t *testing.T) {
	t.Parallel()
	url, d := group(t, testservers.FakeKafka(t, "in", "in.dlq")), newWorkspace(t)
	d.env = append(d.env, "KNOWS="+d.path("knows"))
	args := []string{"--max-attempts", "1", "--", "sh", "-c", knows}
	d.consume(5, url, "300ms", args...)
	d.nixie(0, "dlq", "redrive", "--from", url+".dlq", "--all", "--set-header", "fixed=yes", "--reason", "fixed", "--yes")
	d.consume(0, url, "300ms", args...)
	seen := times(d.ledger("knows"))
	if seen["1,0,none,none,"] != idleRecords {
		t.Errorf("%v", seen)
	}
	delete(seen, "1,0,none,none,")
	redriven := 0
	for line, n := range seen {
		redriven += n
		part := strings.SplitN(line, ",", 5)
		if at, err := time.Parse(time.RFC3339, part[3]); part[0] != "2" || part[1] != "1" || len(part[2]) != 36 || err != nil ||
			time.Since(at) > time.Hour || part[4] != `[{"name":"fixed","value":"yes"}]` {
			t.Errorf("%q: %v", line, err)
		}
	}
	if redriven != idleRecords {
		t.Errorf("%d were redriven: %v", redriven, seen)
	}
}
