package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/store"
)

// desk runs command lines on a store with the letters of the stories.
type desk struct {
	*testing.T
	env     map[string]string
	columns int // 0: no terminal
	answer  string
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	folder := t.TempDir()
	d := &desk{T: t, env: map[string]string{"NIXIE_STORE": filepath.Join(folder, "s.db"), "NIXIE_ACTOR": "ann@desk", "NO_COLOR": "1",
		"XDG_STATE_HOME": folder}}
	fillStore("sqlite://"+d.env["NIXIE_STORE"], func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	})
	return d
}

func (d *desk) nixie(args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	terminal := d.columns > 0
	env := func(name string) string { return d.env[name] }
	code = Main(args, Streams{In: strings.NewReader(d.answer + "\n"), Out: &o, Err: &e, Env: env,
		OutTTY: terminal, ErrTTY: terminal, InTTY: terminal, Columns: d.columns, Now: func() time.Time { return noon }})
	return code, o.String(), e.String()
}

// statuses returns the status of each letter of the store.
func (d *desk) statuses() map[nixie.ID]nixie.Status {
	d.Helper()
	st, err := app.OpenStore("sqlite://"+d.env["NIXIE_STORE"], app.Options{MustExist: true, Clock: func() time.Time { return noon }})
	if err != nil {
		d.Fatal(err)
	}
	list, _, err := st.Letters(context.Background(), nixie.Filter{}, store.Page{})
	if err != nil {
		d.Fatal(err)
	}
	if err := st.Close(); err != nil {
		d.Fatal(err)
	}
	all := map[nixie.ID]nixie.Status{}
	for _, l := range list {
		all[l.ID] = l.Status
	}
	return all
}

// Words of other tools that read are done, and those of a redrive ask first. They destroy nothing.
func TestWordsOfOthers(t *testing.T) {
	d := newDesk(t)
	before := d.statuses()
	const letter = "01970000-0000-7000-8000-000000000001" // its message
	for _, c := range []struct {
		line string
		code int
		says string // on standard output, or else on standard error
	}{
		{"ls", 0, "order-1"}, {"peek", 0, "order-1"}, {"list", 0, "order-1"}, {"ps", 0, "READY"}, {"analyze", 0, "causes"},
		{"get " + letter, 0, "connect to <host>: refused"}, {"view " + letter, 0, "letter  "}, {"describe " + letter, 0, "letter  "},
		{"cat " + letter, 0, "letter  "}, {"show " + letter, 0, "letter  "},
		{"dlq ls", 0, "order-1"}, {"dlq peek", 0, "order-1"}, {"dlq ps", 0, "order-1"}, {"dlq get " + letter, 0, "letter  "},
		{"dlq view " + letter, 0, "letter  "}, {"dlq describe " + letter, 0, "letter  "}, {"dlq cat " + letter, 0, "letter  "},
		{"queue ls", 0, "READY"}, {"queue ps", 0, "READY"}, {"queue get orders", 0, "orders"}, {"queue describe orders", 0, "orders"},
		{"message ls", 0, "bill-1"}, {"message peek", 0, "bill-1"}, {"message get bill-1", 0, "bill-1"},
		{"message cat bill-1", 0, "bill-1"},
		{"operation ls", 0, "no operations"}, {"audit ls", 0, "configure"}, {"stream ls orders", 0, "no streams"},
		{"dlq ls --json", 0, `"key":"order-1"`}, {"dlq ls --queue billing", 0, "order-1"}, {"dlq ls --since 100m", 0, "order-1"},
		{"dlq ls --since 1m", 0, "no letters"}, {"dlq ls --since 2026-05-04", 0, "order-1"},
		{"dlq ls --since soon", 2, "or a duration such as 2h"},
		{"retry " + letter + " --reason x", 2, "no terminal to ask on: give --yes"},
		{"dlq retry --all --reason x", 2, "no terminal to ask on"},
		{"dlq replay --all --reason x", 2, "no terminal to ask on"},
		{"dlq requeue --all --reason x", 2, "no terminal to ask on"},
		{"dlq resubmit --all --reason x", 2, "no terminal to ask on"},
		{"replay", 2, "nothing is chosen"}, {"requeue", 2, "nothing is chosen"},
		{"resubmit", 2, "nothing is chosen"},
		{"message retry x", 2, "did you mean retry-now?"},
		{"get queues", 2, "did you mean nixie queue list, or nixie queue show?"}, {"describe queue orders", 2, "nixie queue show?"},
		{"work -j 0 orders -- true", 2, "parallel is 0"}, {"dlq list orders", 2, "did you mean --filter orders?"},
	} {
		code, out, errs := d.nixie(strings.Fields(c.line)...)
		t.Logf("%-40s %d  %s", c.line, code, strings.SplitN(out+errs, "\n", 2)[0])
		if code != c.code || !strings.Contains(out+errs, c.says) {
			t.Errorf("nixie %s: %d, want %d with %q\n%s%s", c.line, code, c.code, c.says, out, errs)
		}
	}
	d.columns, d.answer = 80, "no"
	code, _, errs := d.nixie("dlq", "retry", "--all", "--reason", "x")
	if code != ExitFailure || !strings.Contains(errs, "Go on? Type yes: ") {
		t.Errorf("a retry without an answer: %d, %s", code, errs)
	}
	for id, status := range d.statuses() {
		if before[id] != status {
			t.Errorf("letter %s was %s and is %s", id, before[id], status)
		}
	}
}

// Each word and typo gets an answer that names what to type, and destroys nothing.
func TestWordsThatAreNoCommands(t *testing.T) {
	d := newDesk(t)
	before, err := os.ReadFile(d.env["NIXIE_STORE"])
	if err != nil {
		t.Fatal(err)
	}
	type answer struct{ words, says string }
	answers := []answer{
		{"lst lits lsit lis listt liste", "list"}, {"dlq:sho dlq:shwo dlq:shw dlq:showw", "show"},
		{"dlq:redirve dlq:redrve dlq:redriev redirve redrvie", "redrive"}, {"dlq:discrad dlq:discad discrad", "discard"},
		{"dlq:purg dlq:pruge", "purge"}, {"dlq:holdd dlq:hlod", "hold"}, {"dlq:unhol", "unhold"},
		{"dlq:analyse dlq:analize analyse", "analyze"},
		{"dlq:stat dlq:sats", "stats"}, {"dlq:wacth dlq:wtach", "watch"}, {"dlq:exprot dlq:exoprt exprot", "export"},
		{"dlq:imoprt dlq:improt", "import"},
		{"dlq:adpot", "adopt"}, {"dlq:restor dlq:retsore", "restore"}, {"dlq:requalfy", "requalify"}, {"enque enqueu enqeue", "enqueue"},
		{"queue:puase queue:pasue puase", "pause"}, {"queue:resum queue:reusme", "resume"}, {"queue:drian", "drain"},
		{"queu qeue", "queue"},
		{"mesage messge", "message"}, {"message:cancle", "cancel"}, {"message:reshedule", "reschedule"},
		{"migrat migarte", "migrate"},
		{"migrate:valdate", "validate"}, {"opertion", "operation"}, {"policy:simualte", "simulate"},
		{"doctr", "doctor"}, {"verfy", "verify"},
		{"sevre", "serve"}, {"wrk", "work"}, {"cosume", "consume"}, {"audti", "audit"}, {"strem", "stream"},
		{"list_queues list-queues", "nixie queue list"}, {"delete_queue delete-message", "nixie dlq purge"},
		{"purge-queue", "nixie dlq purge"}, {"retryJobs retry_all", "nixie dlq redrive"}, {"send-message sendMessage", "nixie enqueue"},
		{"pause", "nixie queue pause"}, {"discard purge", "nixie dlq "}, {"queue:redrive", "nixie dlq redrive"},
	}
	for _, w := range otherWords {
		answers = append(answers, answer{w.words, w.instead})
	}
	root, words := surfaceRoot(), 0
	for _, a := range answers {
		for _, word := range strings.Fields(a.words) {
			line := strings.Split(word, ":")
			words++
			code, out, errs := d.nixie(append(line, "--all", "--yes", "--reason", "x", "--filter", "queue:orders")...)
			t.Logf("%-18s %s", strings.Join(line, " "), strings.TrimSpace(errs))
			if found, _, err := root.Find(line); err == nil && found.Name() == word && !found.HasSubCommands() {
				t.Errorf("%s is a command", word)
			}
			if code != ExitUsage || out != "" || !strings.Contains(errs, a.says) {
				t.Errorf("nixie %s: %d, want %q\n%s%s", word, code, a.says, out, errs)
			}
		}
	}
	if words < 100 {
		t.Errorf("%d words are tried", words)
	}
	after, err := os.ReadFile(d.env["NIXIE_STORE"])
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the store was changed: %v", err)
	}
}

// Synonyms are names of commands that read, and of redrive.
func TestSynonymsDestroyNothing(t *testing.T) {
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		for _, alias := range c.Aliases {
			if name := c.Name(); name != "list" && name != "show" && name != "inspect" && name != "redrive" {
				t.Errorf("%s is also called %s", c.CommandPath(), alias)
			}
		}
		for _, below := range c.Commands() {
			walk(below)
		}
	}
	walk(surfaceRoot())
}
