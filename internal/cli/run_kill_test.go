//go:build unix

package cli_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// kindOf returns the subject of a webhook. Those of a host that is gone come late in
// the list, after the kills: a kill during the last attempt of one would make
// it poison.
func kindOf(i int) string {
	switch {
	case i >= 240 && i%6 == 0:
		return "gone"
	case i%22 == 11:
		return "wrong"
	}
	return "paid"
}

// webhooks writes n JSON webhooks of 1 to 30 KB, some of which fail.
func (d *workspace) webhooks(n int) {
	d.t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	var list strings.Builder
	for i := range n {
		line, err := json.Marshal(map[string]any{"id": fmt.Sprintf("wh-%03d", i), "kind": kindOf(i),
			"payload": strings.Repeat("x", 1000+rng.IntN(29_000))})
		if err != nil {
			d.t.Fatal(err)
		}
		list.Write(append(line, '\n'))
	}
	d.write("webhooks.jsonl", list.String())
	d.write("deliver", `#!/bin/sh
echo "$NIXIE_ITEM_ID" >> ledger
cat > /dev/null
sleep 1000 &
sleep 0.02 # so that no kill comes late, among those of the lost host
case $1 in
gone) [ -e fixed ] || { echo "connect: host gone" >&2; exit 69; } ;;
wrong) echo "no such customer" >&2; exit 65 ;;
esac
echo "$NIXIE_ITEM_ID" >> delivered
`)
}

// start starts a command in a process group of its own.
func (d *workspace) start(name string, args ...string) *exec.Cmd {
	d.t.Helper()
	cmd := d.command(name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	return cmd
}

// killThreeTimes starts a run, kills it with -9 in the middle and looks at what
// is left, three times.
func (d *workspace) killThreeTimes(args []string) {
	d.t.Helper()
	for range 3 {
		d.killAfter(60, args)
		d.verify()
	}
}

// ranTwice counts executions of webhooks beyond those that a job without kills
// has.
func (d *workspace) ranTwice(items, attempts int) (twice int) {
	d.t.Helper()
	ran := times(d.ledger("ledger"))
	for i := range items {
		n, limit := ran[fmt.Sprintf("wh-%03d", i)], 1
		if kindOf(i) == "gone" {
			limit = attempts // these fail and are tried again anyway
		}
		if n < limit || n > limit+3 {
			d.t.Errorf("item %d ran %d times", i, n)
		}
		twice += n - limit
	}
	return twice
}

// 329 webhooks, the runner killed with -9 three times in the middle: each is
// handled to one end, few run twice, nothing is left, and a redrive after the
// fix empties the office.
func TestShow2KilledThreeTimes(t *testing.T) {
	t.Parallel()
	const items, parallel, attempts = 329, 4, 3
	d := newWorkspace(t)
	d.webhooks(items)
	args := []string{"run", "webhooks.jsonl", "--job", "hooks", "-p", fmt.Sprint(parallel), "--backoff", "10ms", "--max-attempts",
		fmt.Sprint(attempts), "-o", "json", "--", "./deliver", "{kind}"}
	d.killThreeTimes(args)
	s := d.summary(d.nixie(5, args...))
	const gone, wrong = 15, 15 // see kindOf
	if s.Items != items || s.Succeeded != items-gone-wrong || s.Dead != gone+wrong || s.Unfinished != 0 || len(s.Groups) != 2 {
		t.Errorf("summary %+v", s)
	}
	d.verify()

	if twice := d.ranTwice(items, attempts); twice > 3*parallel {
		t.Errorf("%d items ran twice, at most %d may", twice, 3*parallel)
	}
	letters := d.letters("queue:hooks reason:dependency")
	if len(letters) != gone {
		t.Fatalf("%d letters of the lost host, want %d", len(letters), gone)
	}
	for _, l := range letters {
		whole := d.letter(l.ID)
		if len(whole.History) != attempts || len(whole.Message.Body) < 1000 {
			t.Errorf("letter %s: %d failures, body of %d bytes", l.Key, len(whole.History), len(whole.Message.Body))
		}
		for _, f := range whole.History {
			if f.Reason != "lease-expired" && (f.Message != "connect: host gone" || len(f.Attachments) != 1 ||
				f.Attachments[0].Text != "connect: host gone\n") {
				t.Errorf("letter %s: failure %+v", l.Key, f)
			}
		}
	}
	d.write("fixed", "")
	d.nixie(0, "dlq", "redrive", "--filter", "queue:hooks reason:dependency", "--reason", "host is back", "--yes")
	d.verify()
	if s := d.summary(d.nixie(5, args...)); s.Succeeded != items-wrong || s.Dead != wrong || s.Attempts != gone {
		t.Errorf("after the redrive: %+v", s)
	}
	if left := d.letters("reason:dependency status:open"); len(left) > 0 {
		t.Errorf("open letters of the group: %+v", left)
	}
	for _, l := range letters {
		if whole := d.letter(l.ID); whole.Status != "resolved" || len(whole.History) != attempts || whole.Redrives != 1 {
			t.Errorf("letter %s after the redrive: %s, %d failures, %d redrives", l.Key, whole.Status, len(whole.History), whole.Redrives)
		}
	}
	d.nixie(0, "dlq", "discard", "--filter", "reason:validation", "--reason", "no customer", "--yes")
	if left := d.letters(""); len(left) > 0 {
		t.Errorf("the office is not empty: %d letters", len(left))
	}
	if ends := times(d.ledger("delivered")); len(ends) != items-wrong {
		t.Errorf("%d items delivered, want %d", len(ends), items-wrong)
	}
	if s := d.summary(d.nixie(0, args...)); s.Items != items || s.Attempts != 0 || s.Discarded != wrong {
		t.Errorf("the last run: %+v", s)
	}
	d.verify()
	d.noProcess()
}

// One command kills the runner's whole process group each time it runs. It stands alone
// after as many kills as the parallelism can be halved, and ends as a letter of cause
// poison one or two kills later, with a single attempt allowed. Its neighbours all
// succeed, and run at most once more for each kill.
func TestShow3PoisonCommand(t *testing.T) {
	t.Parallel()
	for _, size := range []struct{ items, parallel, most int }{{1000, 4, 4}, {329, 32, 7}} {
		t.Run(fmt.Sprint(size.parallel), func(t *testing.T) {
			poisonCommand(t, size.items, size.parallel, size.most)
		})
	}
}

func poisonCommand(t *testing.T, items, parallel, most int) {
	const killer = "250"
	d := newWorkspace(t)
	var list strings.Builder
	for i := range items {
		fmt.Fprintf(&list, "%d\n", i)
	}
	d.write("items.txt", list.String())
	d.write("work", `#!/bin/sh
echo "$1" >> ledger
[ "$1" != 250 ] || kill -9 -"$(cat group)"
`)
	args := []string{"run", "items.txt", "--job", "poison", "-p", fmt.Sprint(parallel), "--max-attempts", "1", "-o", "json", "--", "./work",
		"{line}"}
	killed := 0
	var last string
	for ; killed <= most; killed++ {
		cmd := d.command("sh", append([]string{"-c", `echo $$ > group; exec nixie "$@"`, "sh"}, args...)...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		r := d.finish(cmd)
		d.noProcess()
		d.verify()
		if r.code != -1 { // -1: by a signal
			if r.code != 5 {
				t.Fatalf("exit %d\n%s%s", r.code, r.out, r.err)
			}
			last = r.out
			break
		}
	}
	if killed > most || last == "" {
		t.Fatalf("the runner was killed %d times, the most is %d", killed, most)
	}
	if s := d.summary(done{out: last}); s.Succeeded != items-1 || s.Dead != 1 || len(s.Groups) != 1 {
		t.Errorf("summary %+v", s)
	}
	letters := d.letters("")
	if len(letters) != 1 || letters[0].Cause != "poison" || letters[0].Reason != "poison" || letters[0].Crashes != killed {
		t.Fatalf("letters %+v", letters)
	}
	if l := d.letter(letters[0].ID); l.Message.Body != killer || len(l.History) != killed {
		t.Errorf("letter %+v", l)
	}
	for item, n := range times(d.ledger("ledger")) {
		if item == killer && n != killed || item != killer && n > killed+1 {
			t.Errorf("item %s ran %d times", item, n)
		}
	}
	t.Logf("%d at a time: poison after %d kills", parallel, killed)
}

// Ten kills of a runner that has 32 healthy items in hand, at moments of all kinds:
// none is a letter, with a single attempt allowed, and from the first kill to the end it
// takes at most a second a kill longer than undisturbed runs of as many executions; a
// second of a machine that does nothing else: a busy one has longer seconds.
func TestTenKillsOfTheRunner(t *testing.T) {
	const items, parallel, kills, sleep = 329, 32, 10, 300 * time.Millisecond
	d := newWorkspace(t)
	lines := func(file string, n int) string {
		var list strings.Builder
		for i := range n {
			fmt.Fprintf(&list, "%d\n", i)
		}
		d.write(file, list.String())
		return file
	}
	lines("items.txt", items)
	d.write("work", fmt.Sprintf("#!/bin/sh\necho \"$1\" >> ledger\nexec sleep %v\n", sleep.Seconds()))
	args := func(file, job string) []string {
		return []string{"run", file, "--job", job, "-p", fmt.Sprint(parallel), "--max-attempts", "1", "-o", "json", "--", "./work",
			"{line}"}
	}

	rng := rand.New(rand.NewPCG(1, 2))
	var first time.Time
	for range kills {
		d.killAfter(1+rng.IntN(2*parallel), args("items.txt", "killed"))
		if first.IsZero() {
			first = time.Now()
		}
	}
	s := d.summary(d.nixie(0, args("items.txt", "killed")...))
	took := time.Since(first)
	if s.Items != items || s.Succeeded != items || s.Dead != 0 || s.Unfinished != 0 {
		t.Errorf("summary %+v", s)
	}
	if left := d.letters(""); len(left) > 0 {
		t.Errorf("letters %+v", left)
	}
	again := 0
	for item, n := range times(d.ledger("ledger")) {
		again += n - 1
		if n > kills+1 {
			t.Errorf("item %s ran %d times", item, n)
		}
	}
	if again > kills*parallel {
		t.Errorf("%d runs beyond the first of each item, at most %d may be", again, kills*parallel)
	}
	d.verify()

	// As many runs in as many starts, undisturbed, say how long a second is.
	each := (items + again) / (kills + 1)
	part := lines("part.txt", each)
	start := time.Now()
	for i := range kills + 1 {
		d.nixie(0, args(part, fmt.Sprint("part-", i))...)
	}
	undisturbed := time.Since(start)
	waves := (each + parallel - 1) / parallel
	wave := undisturbed / ((kills + 1) * time.Duration(waves))
	second := wave * time.Second / sleep
	if most := undisturbed + kills*second; took > most {
		t.Errorf("from the first kill to the end it took %s, at most %s may be", took, most)
	}
	t.Logf("undisturbed %s; from the first of %d kills to the end %s, %d runs more", undisturbed.Round(time.Millisecond), kills,
		took.Round(time.Millisecond), again)
}

// Two runs of a job and a redrive at once on one file, while another program
// enqueues into the job.
func TestShow4AllAtOnce(t *testing.T) {
	t.Parallel()
	const items, added, failing = 200, 60, 20
	d := newWorkspace(t)
	var list strings.Builder
	for i := range items {
		fmt.Fprintf(&list, "{\"id\":\"item-%d\",\"fail\":%v}\n", i, i < failing)
	}
	d.write("items.jsonl", list.String())
	d.write("work", `#!/bin/sh
echo "$NIXIE_ITEM_ID" >> ledger
[ "$1" != true ] || [ -e fixed ] || exit 1
`)
	args := []string{"run", "items.jsonl", "--job", "shared", "--mix", "-p", "2", "--backoff", "0", "--max-attempts", "1",
		"-o", "json", "--", "sh", "-c", `./work "$NIXIE_FIELD_FAIL"`}
	d.nixie(5, args...)
	if n := len(d.letters("")); n != failing {
		t.Fatalf("%d letters, want %d", n, failing)
	}
	var more strings.Builder
	for i := range items {
		fmt.Fprintf(&more, "{\"id\":\"more-%d\"}\n", i)
	}
	d.write("items.jsonl", list.String()+more.String())
	d.write("fixed", "")

	start := make(chan struct{})
	ended := make(chan done)
	lines := [][]string{
		append([]string{"nixie"}, args...), append([]string{"nixie"}, args...),
		{"nixie", "dlq", "redrive", "--filter", "queue:shared", "--reason", "fixed", "--yes", "-o", "json"},
		{"adder", filepath.Join(d.dir, "nixie.db"), "shared", fmt.Sprint(added)},
	}
	for _, line := range lines {
		go func() {
			<-start
			ended <- d.finish(d.command(line[0], line[1:]...))
		}()
	}
	close(start)
	for range lines {
		if r := <-ended; r.code != 0 && r.code != 5 { // a run may end before the redrive is over
			t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
		}
	}
	d.verify()
	s := d.summary(d.nixie(0, args...)) // for items that came at the very end
	if s.Items != 2*items+added || s.Succeeded != s.Items || s.Dead != 0 || s.Unfinished != 0 {
		t.Errorf("summary %+v", s)
	}
	for item, n := range times(d.ledger("ledger")) {
		want := 1
		var i int
		if _, err := fmt.Sscanf(item, "item-%d", &i); err == nil && i < failing {
			want = 2 // failed once, redriven
		}
		if n != want {
			t.Errorf("%s ran %d times, want %d", item, n, want)
		}
	}
	if n := len(times(d.ledger("ledger"))); n != 2*items+added {
		t.Errorf("%d items ran, want %d", n, 2*items+added)
	}
	d.verify()
	d.noProcess()
}
