package cli_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nixie-go/nixie/internal/proof"
)

// exactly has the body of a number, and the message and letter that have it.
type exactly struct {
	proof.Number
	key, body, nextKey, nextBody string
}

func exactBodies() (all []exactly) {
	for i, n := range proof.Numbers() {
		all = append(all, exactly{
			n, fmt.Sprint("n", i), fmt.Sprintf(`{"n": %s, "of": [%[1]s]}`, n.Text), fmt.Sprint("next", i), fmt.Sprintf(`{"n": %s}`, n.Next),
		})
	}
	return all
}

// A number of any size goes through every command as it was written, and --where tells it from its
// neighbour.
func TestExactNumbers(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	all := exactBodies()
	var lines, items strings.Builder
	for _, n := range all {
		fmt.Fprintf(&lines, `{"key":%q,"body":%s}`+"\n"+`{"key":%q,"body":%s}`+"\n", n.key, n.body, n.nextKey, n.nextBody)
		fmt.Fprintf(&items, `{"id":%q,"n":%s}`+"\n"+`{"id":%q,"n":%s}`+"\n", n.key, n.Text, n.nextKey, n.Next)
	}
	d.write("lines.jsonl", lines.String())
	d.write("items.jsonl", items.String())
	say := func(spot, what string, n exactly) { t.Logf("%-30s %-14s %s", spot, n.Name, what) }
	kept := func(spot, text string, parts func(exactly) []string) {
		t.Helper()
		for _, n := range all {
			for _, part := range parts(n) {
				if !strings.Contains(text, part) {
					t.Errorf("%s: %s is another number", spot, n.Name)
				}
			}
			say(spot, "as written", n)
		}
	}
	bodies := func(n exactly) []string { return []string{n.body + "\n", n.nextBody + "\n"} }
	inJSON := func(n exactly) (texts []string) {
		for _, body := range []string{n.body, n.nextBody} {
			text, err := json.Marshal(body)
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, string(text))
		}
		return texts
	}

	d.nixie(0, "enqueue", "q", "--jsonl", "lines.jsonl")
	die := func(file string) {
		d.nixie(5, "work", "q", "--drain", "-p", "1", "--max-attempts", "1", "--", "sh", "-c", `cat >> "$0"; echo >> "$0"; exit 1`, file)
	}
	die("seen")
	kept("enqueue --jsonl, work", d.read("seen"), bodies)
	kept("dlq show -o json", d.shown(all, "-o", "json"), inJSON)
	kept("dlq show", d.shown(all), func(n exactly) []string { return []string{n.Text[:min(len(n.Text), 500)]} })
	ids := d.letterIDs()
	for _, n := range all {
		d.chosen(n, ids, say)
	}

	got := d.nixie(0, "run", "items.jsonl", "--job", "arguments", "--", "sh", "-c", `echo "<$0>"`, "{n}").out
	kept("{field}", got, func(n exactly) []string { return []string{"<" + n.Text + ">", "<" + n.Next + ">"} })
	order := strings.Fields(d.nixie(0, "run", "items.jsonl", "--job", "order", "-p", "1", "--sort-by", "n", "--distinct", "n", "--", "echo",
		"{id}").out)
	for _, n := range all {
		if at := slices.Index(order, n.key); at < 0 || slices.Index(order, n.nextKey) < at {
			t.Errorf("--sort-by, --distinct: %s comes at %d: %v", n.Name, at, order)
		}
		say("--sort-by, --distinct", "exact", n)
	}

	for _, format := range []string{"jsonl", "csv"} {
		d.write("letters."+format, d.nixie(0, "dlq", "export", "--format", format, "--unmask").out)
		other := newWorkspace(t)
		other.write("letters."+format, d.read("letters."+format))
		other.nixie(0, "dlq", "import", "letters."+format, "--reason", "moved")
		kept("export, import "+format, other.shown(all, "-o", "json"), inJSON)
	}
	rounding := d.nixie(5, "dlq", "redrive", all[2].key, "--pipe", "sed s/807/808/", "--reason", "r", "--yes")
	if !strings.Contains(rounding.out, "--pipe: the command rounds 9223372036854775807 to 9223372036854775808") {
		t.Errorf("a command that computes in float64: %s", rounding.out)
	}
	d.nixie(0, "dlq", "redrive", "--all", "--set-header", "a=b", "--pipe", "cat", "--reason", "again", "--yes")
	die("again")
	kept("redrive --pipe", d.read("again"), bodies)
	d.verify()
}

// shown shows the letters of all numbers.
func (d *workspace) shown(all []exactly, flags ...string) string {
	d.t.Helper()
	text := ""
	for _, n := range all {
		for _, key := range []string{n.key, n.nextKey} {
			text += d.nixie(0, append([]string{"dlq", "show", key, "--unmask"}, flags...)...).out
		}
	}
	return text
}

// chosen looks for the one letter, and for the one item of a list, that --where chooses of all.
func (d *workspace) chosen(n exactly, ids map[string]string, say func(string, string, exactly)) {
	d.t.Helper()
	for _, words := range []string{"dlq list", "dlq redrive --dry-run --reason r", "dlq discard --dry-run --reason r", "dlq export"} {
		spot := strings.Join(strings.Fields(words)[:2], " ") + " --where"
		args := append(strings.Fields(words), "--where")
		outcome := "exact"
		for text, want := range map[string]string{n.Same: n.key, n.Next: n.nextKey} {
			where := fmt.Sprintf(`item.n == %s`, text)
			if len(where) > 4096 {
				if r := d.nixie(2, append(args, where)...); !strings.Contains(r.err, "give at most 4096") {
					d.t.Error(r.err)
				}
				outcome = "refused: an expression has at most 4096 bytes"
				continue
			}
			r := d.nixie(0, append(args, where, "-o", "json")...)
			for key, id := range ids {
				if strings.Contains(r.out, id) != (key == want) {
					d.t.Errorf("%s: %s chooses %s or not: %.300s", spot, text, key, r.out)
				}
			}
		}
		say(spot, outcome, n)
	}
	if len(n.Same)+len(n.Next) < 4096 {
		expression := "item.n == " + n.Same + " || item.n in [" + n.Same + "]"
		got := d.nixie(0, "run", "items.jsonl", "--job", n.key, "--where", expression, "--", "echo", "{id}")
		if got.out != n.key+"\n" {
			d.t.Errorf("run --where %s: %s", n.Same, got.out)
		}
		say("run --where", "exact", n)
	}
}

// letterIDs returns the letters by the keys of their messages.
func (d *workspace) letterIDs() map[string]string {
	d.t.Helper()
	var list []struct{ ID, Key string }
	if err := json.Unmarshal([]byte(d.nixie(0, "dlq", "list", "--all", "-o", "json").out), &list); err != nil {
		d.t.Fatal(err)
	}
	ids := map[string]string{}
	for _, l := range list {
		ids[l.Key] = l.ID
	}
	return ids
}
