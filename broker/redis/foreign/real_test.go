//go:build unix

package foreign

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/proof/testservers"
)

// library is a job queue itself, with what a letter must tell of its job that died.
type library struct {
	name, format string
	probe        []string // a command that succeeds where the library is
	script, work []string // what runs its acts, and its worker; nil: the act work of the script
	broker       bool     // its queues are in RabbitMQ, and only its results in Redis
	prefix       bool     // of its keys can be chosen
	chain        []string // what a chain does after its redrive; nil: there is none, or a test of its own
	twice        bool     // an ID can be that of two jobs
	limits       bool     // jobs can have a rate limit that their queue does not know

	want              string // type of the job, error, its text
	attempts, history int

	url  string // of its broker
	ends bool   // its worker ends with its standard input, and is not killed
}

var libraries = []library{
	{name: "Sidekiq", format: "sidekiq", probe: []string{"ruby", "-e", "require 'sidekiq'"}, script: []string{"ruby", "jobs.rb"},
		work: []string{"sidekiq", "-r", "./jobs.rb", "-q", "mails", "-c", "1", "-t", "1"}, want: "Mail ArgumentError boom 7",
		attempts: 1, history: 1, twice: true},
	{name: "BullMQ", format: "bullmq", probe: []string{"node", "-e", "require('bullmq')"}, script: []string{"node", "jobs.js", "bullmq"},
		prefix: true, chain: []string{"7", "after"}, want: "mail TypeError boom 7", attempts: 2, history: 1},
	{name: "Bull 4", format: "bullmq", probe: []string{"node", "-e", "require('bull')"}, script: []string{"node", "jobs.js", "bull"},
		prefix: true, want: "mail TypeError boom 7", attempts: 2, history: 1},
	{name: "RQ", format: "rq", probe: []string{"python", "-c", "import rq"}, script: []string{"python", "jobs_rq.py"},
		chain: []string{"7", "after"}, limits: true, want: "jobs_rq.mail ValueError boom 7", history: 1},
	{name: "asynq", format: "asynq", script: []string{"asynqjobs"}, ends: true, want: "mail  boom 7", attempts: 1, history: 1},
	{name: "Dramatiq", format: "dramatiq", probe: []string{"python", "-c", "import dramatiq"},
		script: []string{"python", "jobs_dramatiq.py"}, prefix: true, chain: []string{"7", "after"}, want: "mail ValueError boom 7",
		attempts: 2, history: 1, twice: true},
	{name: "Celery", format: "celery", probe: []string{"python", "-c", "import celery"}, script: []string{"python", "jobs_celery.py"},
		prefix: true, want: "mail ValueError boom 7", attempts: 1, history: 1},
	{name: "Celery, RabbitMQ", format: "celery", probe: []string{"python", "-c", "import celery, amqp"},
		script: []string{"python", "jobs_celery.py"}, broker: true, want: "mail ValueError boom 7", attempts: 1, history: 1},
}

// TestRealJobQueues runs each job queue itself in each case that an operator meets. It prints what
// became of the letter: it goes, or is refused and nothing is changed.
func TestRealJobQueues(t *testing.T) {
	columns := []string{"as its retry", "ID used again", "died again", "wrong database", "what follows", "prefix", "rate limit"}
	seen := map[string]string{}
	var mu sync.Mutex
	if os.Getenv("NIXIE_TEST_JOBQUEUES") == "" {
		columns = columns[:1] // the others take minutes
	}
	rabbit := ""
	if len(columns) > 1 {
		rabbit = "amqp://guest:guest@" + testservers.OwnRabbitMQ(t).Addr + "//"
	}
	t.Run("each", func(t *testing.T) {
		for _, l := range libraries {
			for _, column := range columns {
				t.Run(l.name+"/"+column, func(t *testing.T) {
					l.need(t)
					switch l.url = rabbit; {
					case !l.broker:
						l.url = ""
						t.Parallel()
					case rabbit == "":
						t.Skip("set NIXIE_TEST_JOBQUEUES for RabbitMQ")
					}
					got := l.cell(t, column)
					mu.Lock()
					defer mu.Unlock()
					if seen[l.name+column] = got; t.Failed() {
						seen[l.name+column] = "FAULT"
					}
				})
			}
		}
	})
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "library\t"+strings.Join(columns, "\t"))
	for _, l := range libraries {
		fmt.Fprint(w, l.name)
		for _, column := range columns {
			fmt.Fprint(w, "\t", cmp.Or(seen[l.name+column], "not run"))
		}
		fmt.Fprintln(w)
	}
	_ = w.Flush() // to the terminal
}

// cell runs one case and tells how it ended.
func (l *library) cell(t *testing.T, column string) string {
	if column == "prefix" && l.prefix {
		return l.plain(l.scene(t, "shop"))
	}
	p := l.scene(t, "")
	switch column {
	case "as its retry":
		return l.asItsRetry(p)
	case "ID used again":
		return l.usedAgain(p)
	case "died again":
		return l.diedAgain(p)
	case "wrong database":
		return l.wrongDatabase(p, l.scene(t, ""))
	case "what follows":
		if l.format == "celery" && !l.broker {
			return celerySteps(p)
		}
		return l.follows(p)
	case "rate limit":
		return l.limited(p)
	}
	return "none"
}

// need skips the test where the library is not; with NIXIE_TEST_REQUIRE set it fails.
func (l *library) need(t *testing.T) {
	server.Need(t)
	if l.probe == nil {
		return
	}
	if err := l.command(t, &scene{}, l.probe).Run(); err != nil {
		why := "no " + l.name + ": NIXIE_TEST_JOBQUEUES=1 make test-servers installs it"
		if os.Getenv("NIXIE_TEST_REQUIRE") != "" && os.Getenv("NIXIE_TEST_JOBQUEUES") != "" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
}

// scene is a database in which a library has its jobs.
type scene struct {
	t      *testing.T
	l      *library
	c      *redis.Client
	url    string
	prefix string
	more   []string // of the environment
}

func (l *library) scene(t *testing.T, prefix string) *scene {
	c, url := database(t)
	return &scene{t: t, l: l, c: c, url: url, prefix: prefix}
}

func (p *scene) config() Config { return Config{Format: p.l.format, Prefix: p.prefix} }

// command makes a command that runs among the scripts.
func (l *library) command(t *testing.T, p *scene, args []string) *exec.Cmd {
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skip("no folder for caches: ", err)
	}
	home := filepath.Join(cache, "nixie-jobqueues") // where make test-servers puts libraries
	name := args[0]
	switch name {
	case "python":
		name = filepath.Join(home, "venv", "bin", "python")
	case "asynqjobs":
		name = asynqjobs(t)
	}
	cmd := exec.CommandContext(t.Context(), name, args[1:]...)
	cmd.Dir = "testdata"
	cmd.Env = append(os.Environ(), "REDIS_URL="+p.url, "PREFIX="+p.prefix, "BROKER="+l.url,
		"NODE_PATH="+filepath.Join(home, "node_modules"), "PYTHONDONTWRITEBYTECODE=1")
	cmd.Env = append(cmd.Env, p.more...)
	return cmd
}

// act does one thing with the library, and returns what that says.
func (p *scene) act(args ...string) string {
	p.t.Helper()
	out, err := p.l.command(p.t, p, append(slices.Clone(p.l.script), args...)).CombinedOutput()
	if err != nil {
		p.t.Fatalf("%s: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// working runs a worker of the library until something has happened.
func (p *scene) working(what string, is func() bool) {
	p.t.Helper()
	args := p.l.work
	if args == nil {
		args = append(slices.Clone(p.l.script), "work")
	}
	var said bytes.Buffer
	cmd := p.l.command(p.t, p, args)
	cmd.Stdout, cmd.Stderr = &said, &said
	end := func() { _ = cmd.Process.Kill() } // it may have ended
	if p.l.ends {
		in, err := cmd.StdinPipe()
		if err != nil {
			p.t.Fatal(err)
		}
		end = func() { _ = in.Close() } // likewise
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	defer func() {
		end()
		_ = cmd.Wait()
		if p.t.Failed() {
			p.t.Logf("%s: %s", what, said.String())
		}
	}()
	until(p.t, what, is)
}

// dies enqueues a job and lets it die.
func (p *scene) dies(act, id string, n int) {
	p.t.Helper()
	was := p.dead()
	p.act(act, id, fmt.Sprint(n))
	p.working("its death", func() bool { return p.dead() != was })
}

// dead names the deaths that lie there.
func (p *scene) dead() string {
	var all []string
	for _, r := range readAll(p.t, p.c, p.config()) {
		all = append(all, fmt.Sprintf("%s@%d", r.Key, r.Offset))
	}
	return strings.Join(all, " ")
}

// runs lets all jobs succeed, and compares what they wrote.
func (p *scene) runs(want ...string) {
	p.t.Helper()
	run(p.t, p.c, [][]any{{"SET", "fixed", "1"}})
	done := func() []string { return p.c.LRange(p.t.Context(), "done", 0, -1).Val() }
	p.working("its end", func() bool { return len(done()) >= len(want) })
	if got := done(); !slices.Equal(got, want) {
		p.t.Errorf("done: %q, want %q", got, want)
	}
}

// adopts takes in what is dead, and returns the letters that are new.
func (o *office) adopts(p *scene, want int) []nixie.Letter {
	p.t.Helper()
	had := map[nixie.ID]bool{}
	for _, l := range o.letters() {
		had[l.ID] = true
	}
	if n, again := o.adopt(p.c, p.config()), o.adopt(p.c, p.config()); n != want || again != 0 {
		p.t.Fatalf("%d adopted, then %d, want %d", n, again, want)
	}
	return slices.DeleteFunc(o.letters(), func(l nixie.Letter) bool { return had[l.ID] })
}

// refuses sends a letter that must stay, and returns why. Nothing changes.
func (o *office) refuses(p *scene, l nixie.Letter) string {
	p.t.Helper()
	was := dump(p.t, p.c)
	err := o.redrive(p.c, p.config(), nil, l)[0]
	if now := dump(p.t, p.c); now != was || !nixieRefuses(err) {
		p.t.Errorf("%v, and it was\n%s\nand is\n%s", err, was, now)
	}
	return fmt.Sprint(err)
}

// goes sends a letter and lets it run. With a broker elsewhere it must stay.
func (o *office) goes(p *scene, l nixie.Letter, want ...string) string {
	p.t.Helper()
	if p.l.broker {
		if why := o.refuses(p, l); !strings.Contains(why, "of this database names its queue") {
			p.t.Error(why)
		}
		return "refused"
	}
	o.mustRedrive(p.c, p.config(), l)
	o.mustRedrive(p.c, p.config(), l) // a repeat whose answer was lost
	if left := p.dead(); left != "" {
		p.t.Errorf("%s are dead", left)
	}
	p.runs(want...)
	return "goes"
}

// plain is a job that dies and goes back.
func (l *library) plain(p *scene) string {
	p.dies("enqueue", "j1", 7)
	o := newOffice(p.t)
	return o.goes(p, o.adopts(p, 1)[0], "7")
}

// asItsRetry compares all keys after a redrive, by two offices at once, with those after the retry
// of the library.
func (l *library) asItsRetry(p *scene) string {
	t := p.t
	p.dies("enqueue", "j1", 7)
	ours, theirs := newOffice(t), newOffice(t)
	letter, twin := ours.adopts(p, 1)[0], theirs.adopts(p, 1)[0]
	m, f := &letter.Message, letter.History[len(letter.History)-1]
	got := strings.Join([]string{m.Header(headerType), f.Type, f.Text}, " ")
	if got != l.want || m.Attempts != l.attempts || len(letter.History) != l.history || m.Queue != "mails" ||
		(f.Stack == "") != (l.format == "asynq") || m.EnqueuedAt.After(letter.DiedAt) || m.Header(headerDamage) != "" {
		t.Errorf("%q, want %q, %d attempts, %d failures: %+v", got, l.want, m.Attempts, len(letter.History), letter)
	}
	if l.broker {
		return ours.goes(p, letter)
	}
	own := l.scene(t, "")
	for _, key := range p.c.Keys(t.Context(), "*").Val() {
		run(t, own.c, [][]any{{"RESTORE", key, 0, p.c.Dump(t.Context(), key).Val()}})
	}
	own.act("retry", "j1")
	var both sync.WaitGroup
	errs := make([]error, 2)
	both.Go(func() { errs[0] = ours.redrive(p.c, p.config(), nil, letter)[0] })
	both.Go(func() { errs[1] = theirs.redrive(p.c, p.config(), nil, twin)[0] })
	both.Wait()
	if errs[0] != nil && errs[1] != nil {
		t.Error(errs)
	}
	if got, want := timeless(dump(t, p.c)), timeless(dump(t, own.c)); got != want {
		t.Errorf("after a redrive\n%s\nafter its own retry\n%s", got, want)
	}
	p.runs("7")
	own.runs("7")
	letter.Message.Redrives++ // another redrive, of a job that is gone
	ours.refuses(p, letter)
	return "the same"
}

// Parts of a dump that differ at each retry, or are written in another form.
var (
	moments    = regexp.MustCompile(`\b1[6-9]\d{8}(\d{3})?(\.\d+)?(e\+09)?\b|\d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00)`)
	heartbeats = regexp.MustCompile(`(?m)^(string nixie:|zset dramatiq:__heartbeats__).*\n`)
	noError    = ` exc_info="x\x9c\x03\x00\x00\x00\x00\x01"` // RQ compresses an empty text
	quotations = regexp.MustCompile(`"(\\.|[^"\\])*"`)
)

// timeless writes a dump without moments, and JSON in one form. Of a message of Celery it keeps the
// call.
func timeless(text string) string {
	text = strings.ReplaceAll(heartbeats.ReplaceAllString(text+"\n", ""), noError, "")
	text = quotations.ReplaceAllStringFunc(text, func(quoted string) string {
		stored, _ := strconv.Unquote(quoted)
		var v map[string]any
		if json.Unmarshal([]byte(stored), &v) != nil {
			return quoted
		}
		if body, is := v["body"].(string); is {
			call, _ := base64.StdEncoding.DecodeString(body)
			var sent []any
			_ = json.Unmarshal(call, &sent) // an empty one differs
			v = map[string]any{"call": sent, "task": v["headers"].(map[string]any)["task"], "id": v["headers"].(map[string]any)["id"]}
		}
		plain, _ := json.Marshal(v)
		return string(plain)
	})
	return moments.ReplaceAllString(text, "T")
}

// nextSecond waits for it: asynq keeps no more of a death.
func nextSecond(t *testing.T) {
	now := time.Now().Unix()
	until(t, "the next second", func() bool { return time.Now().Unix() > now })
}

// usedAgain has a letter of a job whose ID is that of a newer job, which must not be touched.
func (l *library) usedAgain(p *scene) string {
	p.dies("enqueue", "j1", 7)
	o := newOffice(p.t)
	old := o.adopts(p, 1)[0]
	p.act("remove", "j1")
	nextSecond(p.t)
	p.dies("enqueue", "j1", 9)
	o.refuses(p, old)
	newer := o.adopts(p, 1)[0]
	o.refuses(p, old)
	return "old refused, new " + o.goes(p, newer, "9")
}

// diedAgain sends a job back that dies once more.
func (l *library) diedAgain(p *scene) string {
	p.dies("enqueue", "j1", 7)
	o := newOffice(p.t)
	first := o.adopts(p, 1)[0]
	if l.broker {
		return o.goes(p, first)
	}
	nextSecond(p.t)
	o.mustRedrive(p.c, p.config(), first)
	first.Message.Redrives++ // another redrive
	o.refuses(p, first)
	p.working("its second death", func() bool { return p.dead() != "" })
	second := o.adopts(p, 1)[0]
	o.refuses(p, first)
	return "another letter, " + o.goes(p, second, "7")
}

// wrongDatabase sends a letter to where another job has its ID. Where no key has the ID, there can
// be two of it, and the other one stays.
func (l *library) wrongDatabase(p, wrong *scene) string {
	p.dies("enqueue", "j1", 7)
	wrong.dies("enqueue", "j1", 9)
	o := newOffice(p.t)
	letter := o.adopts(p, 1)[0]
	if l.twice {
		was := wrong.dead()
		o.mustRedrive(wrong.c, wrong.config(), letter)
		wrong.runs("7")
		if is := wrong.dead(); is != was {
			p.t.Errorf("%s are dead, were %s", is, was)
		}
		return "new job, the other stays"
	}
	o.refuses(wrong, letter)
	return "refused, then " + o.goes(p, letter, "7")
}

// follows sends a job back on whose end another one waits.
func (l *library) follows(p *scene) string {
	if l.chain == nil {
		return "none"
	}
	p.dies("chain", "j1", 7)
	o := newOffice(p.t)
	o.goes(p, o.adopts(p, 1)[0], l.chain...)
	return "runs"
}

// limited sends a job back that has a rate limit.
func (l *library) limited(p *scene) string {
	if !l.limits {
		return "none"
	}
	p.dies("limited", "j1", 7)
	o := newOffice(p.t)
	if why := o.refuses(p, o.adopts(p, 1)[0]); !strings.Contains(why, "rate limit smtp, 1 at once") {
		p.t.Error(why)
	}
	return "refused"
}

// celerySteps sends back what died in a chain, a chord, a group, and with a link.
func celerySteps(p *scene) string {
	p.act("chain")
	p.working("the deaths", func() bool { return strings.Count(p.dead(), "@") == 10 })
	o := newOffice(p.t)
	want := map[string]string{"first": "review", "rest": "never", "rest2": "never", "step": "review", "last": "never", "member": "review",
		"body": "never", "part": "review", "linked": "", "mother": "review"}
	for _, l := range o.adopts(p, len(want)) {
		id, is := l.Message.Origin.MessageID, ""
		if l.NeedsReview {
			is = "review"
		} else if !l.Redrivable {
			is = "never"
			o.refuses(p, l)
		}
		if is != want[id] {
			p.t.Errorf("%s: %q, want %q", id, is, want[id])
		}
	}
	run(p.t, p.c, [][]any{{"DEL", "done"}})
	topic := &scene{t: p.t, l: p.l, c: p.c, url: p.url, prefix: "media", more: []string{"TOPIC=1"}}
	topic.working("a worker", func() bool { return topic.c.Exists(p.t.Context(), "media_kombu.binding.media").Val() == 1 })
	return "force, or never; topic " + p.l.plain(topic)
}
