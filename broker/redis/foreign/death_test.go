package foreign

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
)

// deadJob returns the commands that make the dead job j1 of a queue: its amount is in its body, and
// it died some seconds after others.
func deadJob(format string, amount, after int) [][]any {
	at := 1700000002 + after
	zone := time.Unix(int64(at), 0).UTC()
	switch format {
	case "sidekiq":
		return [][]any{{"ZADD", "dead", at,
			fmt.Sprintf(`{"queue":"q","class":"M","jid":"j1","created_at":1700000000.5,"args":[%d]}`, amount)}}
	case "asynq":
		msg := asynqWith([]byte("\x0a\x01t\x1a\x02j1\x22\x01q"), fmt.Append(nil, amount))
		return [][]any{{"SADD", "asynq:queues", "q"}, {"ZADD", "asynq:{q}:archived", at, "j1"},
			{"HSET", "asynq:{q}:t:j1", "msg", msg, "state", "archived"}}
	case "bullmq":
		return [][]any{{"HSET", "bull:q:meta", "version", "bullmq:6.7.0"}, {"ZADD", "bull:q:failed", at * 1000, "j1"},
			{"HSET", "bull:q:j1", "name", "m", "data", amount, "opts", "{}", "timestamp", "1700000000500", "finishedOn", at * 1000}}
	case "rq":
		return [][]any{{"ZADD", "rq:failed:q", at + 1000, "j1"}, {"HSET", "rq:job:j1", "data", amount, "description", "m()",
			"status", "failed", "created_at", "2023-11-14T22:13:20.500000Z", "ended_at", zone.Format(rqTime), "origin", "q"}}
	case "dramatiq":
		return [][]any{{"ZADD", "dramatiq:q.XQ", at * 1000, "r1"}, {"HSET", "dramatiq:q.XQ.msgs", "r1", fmt.Sprintf(`{"queue_name":"q",`+
			`"actor_name":"m","args":[%d],"kwargs":{},"options":{"redis_message_id":"r1"},"message_id":"j1",`+
			`"message_timestamp":1700000000500}`, amount)}}
	}
	return [][]any{kombuBinding, {"SET", "celery-task-meta-j1", fmt.Sprintf(`{"status":"FAILURE","name":"m","args":[%d],"kwargs":{},`+
		`"queue":"q","worker":"w","date_done":"%s"}`, amount, zone.Format("2006-01-02T15:04:05.000000"))}}
}

// kombuBinding makes the queue q known to Celery.
var kombuBinding = []any{"SADD", "_kombu.binding.q", "q\x06\x16\x06\x16q"}

// What lies there now, after an office took in the death of an order of 20, and what a redrive of
// its letter answers.
var meanwhile = []struct {
	what string
	do   func(t *testing.T, c *redis.Client, format string)
	want string // a part of the answer; empty: it goes back
	old  string // of a letter that an earlier version took in, if that differs
}{
	{"the same death", func(*testing.T, *redis.Client, string) {}, "", ""},
	{"trimmed", func(t *testing.T, c *redis.Client, format string) { run(t, c, [][]any{{"FLUSHDB"}}) }, "does not lie in", ""},
	{"used again, died again", func(t *testing.T, c *redis.Client, format string) {
		run(t, c, slices.Concat([][]any{{"FLUSHDB"}}, deadJob(format, 70, 60)))
	}, "does not lie in|is another death, of 2023-11-14T22:14:22.000Z with a body", ""},
	{"died again", func(t *testing.T, c *redis.Client, format string) {
		run(t, c, slices.Concat([][]any{{"FLUSHDB"}}, deadJob(format, 20, 60)))
	}, "does not lie in|is another death, of 2023-11-14T22:14:22.000Z with a body", ""},
	{"replaced in the same moment", func(t *testing.T, c *redis.Client, format string) {
		run(t, c, slices.Concat([][]any{{"FLUSHDB"}}, deadJob(format, 70, 0)))
	}, "is another death", "-"},
	{"a key of another type", func(t *testing.T, c *redis.Client, format string) {
		key := map[string]string{"sidekiq": "dead", "asynq": "asynq:{q}:archived", "bullmq": "bull:q:failed", "rq": "rq:failed:q",
			"dramatiq": "dramatiq:q.XQ", "celery": "celery-task-meta-j1"}[format]
		run(t, c, [][]any{{"DEL", key}, {"RPUSH", key, "x"}})
	}, "is of another type|does not lie in", ""},
	{"on another server, ID taken", func(t *testing.T, c *redis.Client, format string) {
		run(t, c, slices.Concat([][]any{{"FLUSHDB"}, {"SET", serverKey, "another"}}, deadJob(format, 70, 60)))
		if format == "sidekiq" { // its jobs have no IDs there: only the very same entry is taken
			run(t, c, deadJob(format, 20, 0))
		}
	}, "is that of another job here", "does not lie in|is another death|-"},
	{"on another server, ID free", func(t *testing.T, c *redis.Client, format string) {
		run(t, c, [][]any{{"FLUSHDB"}, {"SET", serverKey, "another"}, kombuBinding})
	}, "", "does not lie in"},
}

// TestMeanwhile prints for each job queue what a redrive answers when its dead set changed since
// the letter was taken in. Nothing changes there unless the job goes back.
func TestMeanwhile(t *testing.T) {
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	c, _ := database(t)
	for _, format := range Formats() {
		cfg := Config{Format: format, Adopts: true}
		for _, m := range meanwhile {
			for _, old := range []bool{false, true} {
				run(t, c, slices.Concat([][]any{{"FLUSHDB"}}, deadJob(format, 20, 0)))
				o := newOffice(t)
				if n, again := o.adopt(c, cfg), o.adopt(c, cfg); n != 1 || again != 0 {
					t.Fatalf("%d adopted, then %d", n, again)
				}
				l, want := o.letters()[0], m.want
				if from := l.Message.Origin; from.Server == "" || from.Database == "" || len(from.BodyHash) != 32 {
					t.Fatalf("origin %+v", from)
				}
				if old {
					from := l.Message.Origin
					from.Server, from.Database, from.Prefix, from.BodyHash = "", "", "", nil
					if m.old != "" {
						want = m.old
					}
				}
				m.do(t, c, format)
				was := dump(t, c)
				err := o.redrive(c, cfg, nil, l)[0]
				said := "goes back"
				if err != nil {
					said = err.Error()
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", format, m.what, map[bool]string{false: "letter", true: "letter of before"}[old], said)
				fits := slices.ContainsFunc(strings.Split(want, "|"), func(part string) bool {
					return part == "-" && err == nil || part != "-" && part != "" && strings.Contains(said, part)
				})
				if (want == "") != (err == nil) && !fits || want != "" && !fits {
					t.Errorf("%s, %s, old %v: %v, want %q", format, m.what, old, err, want)
				}
				if changed := dump(t, c) != was; changed == (err != nil) || strings.Contains(said, "discard") {
					t.Errorf("%s, %s, old %v: changed %v, %v", format, m.what, old, changed, err)
				}
			}
		}
	}
	_ = w.Flush() // to memory
	t.Logf("\n%s", table.String())
}

// TestChangedMeanwhile replaces a job between the look and the step: the step changes nothing.
func TestChangedMeanwhile(t *testing.T) {
	c, _ := database(t)
	for _, format := range Formats() {
		run(t, c, slices.Concat([][]any{{"FLUSHDB"}}, deadJob(format, 20, 0)))
		refusedMeanwhile(t, c, format, slices.Concat([][]any{{"FLUSHDB"}}, deadJob(format, 70, 0)))
	}
}

// TestGoneMeanwhile removes the data of a job between the look and the step, as when it expires
// there: of one without a body, too. Its ID alone goes into no queue.
func TestGoneMeanwhile(t *testing.T) {
	c, _ := database(t)
	for format, data := range map[string]string{
		"rq": "rq:job:j1", "bullmq": "bull:q:j1", "asynq": "asynq:{q}:t:j1", "dramatiq": "dramatiq:q.XQ.msgs",
		"celery": "celery-task-meta-j1",
	} {
		run(t, c, slices.Concat([][]any{{"FLUSHDB"}}, deadJob(format, 20, 0)))
		if format == "rq" || format == "bullmq" {
			run(t, c, [][]any{{"HSET", data, "data", ""}})
		}
		refusedMeanwhile(t, c, format, [][]any{{"DEL", data}})
	}
}

// refusedMeanwhile takes in the death that lies there, runs commands between the look and the step
// of its redrive, and sees that the step refuses it and changes nothing.
func refusedMeanwhile(t *testing.T, c *redis.Client, format string, meanwhile [][]any) {
	t.Helper()
	cfg := Config{Format: format, Adopts: true}
	o := newOffice(t)
	o.adopt(c, cfg)
	p, err := NewPublisher(another(c), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	back := broker.FromLetter(&o.letters()[0])
	back.Publication.Channel = "q"
	pub := back.Redriven(time.Unix(1_800_000_000, 0))
	r, err := p.read(&pub)
	if err != nil {
		t.Fatal(err)
	}
	var answer error
	r.answer = &answer
	p.look(t.Context(), []*returning{r})
	if answer != nil {
		t.Errorf("%s is refused before the step: %v", format, answer)
	}
	run(t, c, meanwhile)
	was := dump(t, c)
	p.send(t.Context(), []*returning{r})
	if now := dump(t, c); nixie.CodeOf(answer) != nixie.CodeConflict || now != was {
		t.Errorf("%s: %v\n%s", format, answer, now)
	}
}

// RQ forgets a job that failed after a year: one that goes back has no such time any more.
func TestRQKeepsWhatGoesBack(t *testing.T) {
	c, _ := database(t)
	run(t, c, slices.Concat(deadJob("rq", 20, 0), [][]any{{"EXPIRE", "rq:job:j1", 3600}}))
	cfg := Config{Format: "rq"}
	o := newOffice(t)
	o.adopt(c, cfg)
	o.mustRedrive(c, cfg, o.letters()...)
	if left := c.TTL(t.Context(), "rq:job:j1").Val(); left != -1 {
		t.Errorf("the job is forgotten in %s", left)
	}
}

// A database gets a name once, when jobs are taken in, and none where we may not write or only
// look.
func TestServerName(t *testing.T) {
	c, _ := database(t)
	run(t, c, deadJob("rq", 20, 0))
	server := func(cfg Config, c *redis.Client) string { return readAll(t, c, cfg)[0].Server }
	looks, adopts := Config{Format: "rq"}, Config{Format: "rq", Adopts: true}
	if name := server(looks, c); name != "" || c.Exists(t.Context(), serverKey).Val() != 0 {
		t.Errorf("looking named it %q", name)
	}
	run(t, c, [][]any{{"ACL", "SETUSER", "reader", "on", "nopass", "~*", "+@read", "+select", "+hello", "+client"}})
	limited := *c.Options()
	limited.Username, limited.Password = "reader", "x"
	reader := redis.NewClient(&limited)
	defer func() { _ = reader.Close() }()
	if name := server(adopts, reader); name != "" {
		t.Errorf("a reader named it %q", name)
	}
	o := newOffice(t)
	if n := o.adopt(reader, adopts); n != 1 {
		t.Errorf("%d adopted", n)
	}
	first := server(adopts, c)
	if again := server(adopts, c); first == "" || again != first || server(looks, c) != first || server(adopts, reader) != first {
		t.Errorf("named %q, then %q", first, again)
	}
	if n := o.adopt(c, adopts); n != 0 {
		t.Errorf("%d adopted once the server has a name", n)
	}
	run(t, c, [][]any{{"DEL", serverKey}, {"LPUSH", serverKey, "x"}})
	if name := server(adopts, c); name != "" {
		t.Errorf("named %q", name)
	}
	run(t, c, [][]any{{"ACL", "DELUSER", "reader"}})
}

// Two offices that took in the same death send the job back once.
func TestTwoOfficesGiveBack(t *testing.T) {
	c, _ := database(t)
	for _, format := range Formats() {
		cfg := Config{Format: format, Adopts: true}
		run(t, c, slices.Concat([][]any{{"FLUSHDB"}}, deadJob(format, 20, 0)))
		one, two := newOffice(t), newOffice(t)
		one.adopt(c, cfg)
		two.adopt(c, cfg)
		one.mustRedrive(c, cfg, one.letters()...)
		was := dump(t, c)
		if err := two.redrive(c, cfg, nil, two.letters()...)[0]; err != nil && nixie.CodeOf(err) != nixie.CodeConflict {
			t.Errorf("%s: %v", format, err)
		}
		if now := dump(t, c); now != was {
			t.Errorf("%s: two jobs of one:\n%s", format, now)
		}
	}
}
