package foreign

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/check"
	"github.com/nixie-go/nixie/redrive"
)

// bomb becomes far more than we inflate.
var bomb = deflated(strings.Repeat("\x00", 8*maxInflated))

// hostileValues are values that no system writes.
func hostileValues() []string {
	return []string{"", "{", "null", "[]", "{}", "7", `"text"`, "\xff\x00\xfe", strings.Repeat("[", 20_000), strings.Repeat("é\x00", 1<<14),
		"\u202e\x1b]0;x\x07", `{"jid":{},"queue":7,"class":[],"retry_count":"x","enqueued_at":1e300,"failed_at":-1e300,` +
			`"error_backtrace":{}}`,
		`{"jid":"","queue":"","message_id":7,"options":[],"status":"FAILURE"}`, "NaN", "1e999", "-1", "18446744073709551616",
		pickle, deflated(pickle), bomb, base64.StdEncoding.EncodeToString([]byte(bomb)), `["` + strings.Repeat("x", 1<<17) + `"]`,
		`{"status":"FAILURE","queue":"\u0000","name":"` + strings.Repeat("n", 1<<16) + `","date_done":"2262-01-01T00:00:00","retries":` +
			`1e300}`,
		`{"queue":"` + strings.Repeat("q", 300) + `","jid":"` + strings.Repeat("j", 300) + `"}`, "\x0a\xff\xff\xff\xff\x7f",
		asynqMessage() + "\x80",
	}
}

// Each value in a dead set comes in as a letter that an office takes, or is left out if it is no
// dead job. What goes back does so as a whole or not at all.
func TestHostileValues(t *testing.T) {
	fieldsOf := map[string][]string{"asynq": {"msg"}, "rq": {"data", "description", "created_at", "ended_at", "exc_info", "worker_name"},
		"bullmq": {"name", "data", "opts", "failedReason", "stacktrace", "atm", "attemptsMade", "timestamp", "finishedOn", "priority",
			"parentKey"}}
	for _, format := range Formats() {
		t.Run(format, func(t *testing.T) {
			c, _ := database(t)
			for n, value := range hostileValues() {
				id := fmt.Sprint("id", n)
				score := []string{"inf", "-inf", "1e300", "-5", "0", "1700000000"}[n%6]
				switch format {
				case "sidekiq":
					run(t, c, [][]any{{"ZADD", "dead", score, value}})
				case "dramatiq":
					run(t, c, [][]any{{"ZADD", "dramatiq:q.XQ", score, id}, {"HSET", "dramatiq:q.XQ.msgs", id, value}})
				case "celery":
					run(t, c, [][]any{{"SET", "celery-task-meta-" + id, value}})
				}
				for k, field := range fieldsOf[format] {
					id := fmt.Sprint(id, "-", k)
					set := map[string]string{"asynq": "asynq:{q}:archived", "rq": "rq:failed:q", "bullmq": "bull:q:failed"}[format]
					key := map[string]string{"asynq": "asynq:{q}:t:", "rq": "rq:job:", "bullmq": "bull:q:"}[format] + id
					run(t, c, [][]any{{"ZADD", set, score, id}, {"HSET", key, field, value}, {"SADD", "asynq:queues", "q"}})
					if format == "rq" {
						run(t, c, [][]any{{"XADD", "rq:results:" + id, "1-1", "type", "2", "exc_string", value, "worker_name", value}})
					}
				}
			}
			cfg := Config{Format: format}
			o := newOffice(t)
			was := outline(t, c)
			n := o.adopt(c, cfg)
			if n == 0 || outline(t, c) != was {
				t.Errorf("%d adopted, or something changed", n)
			}
			for _, l := range o.letters() {
				if f := l.History[len(l.History)-1]; strings.Count(f.Stack, "\x00")+strings.Count(f.Stack, "�") > 1000 {
					t.Errorf("%s: a bomb went off", l.Message.Key)
				}
				before := outline(t, c)
				err := o.redrive(c, cfg, nil, l)[0]
				if changed := outline(t, c) != before; changed == (err != nil) {
					t.Errorf("%s: changed %v, %v", l.Message.Key, changed, err)
				}
			}
			if n := o.adopt(c, cfg); n != 0 {
				t.Errorf("%d came in again", n)
			}
			for _, name := range []string{"pwned", "testdata/pwned"} {
				if _, err := os.Stat(name); err == nil {
					t.Error("a pickle ran")
				}
			}
		})
	}
}

// A compressed traceback of up to maxInflated bytes is read. A longer one is left out, and its job
// comes in all the same.
func TestBombsAreLeftOut(t *testing.T) {
	c, _ := database(t)
	for size, want := range map[int]bool{maxInflated: true, maxInflated + 1: false} {
		text, list := packed(strings.Repeat("x", size)), packed(`["`+strings.Repeat("x", size-4)+`"]`)
		run(t, c, [][]any{{"FLUSHDB"},
			{"ZADD", "dead", "1700000002", `{"queue":"q","class":"M","jid":"j1","error_backtrace":"` + list + `"}`},
			{"ZADD", "rq:failed:q", "1700001002", "j1", "1700001002", "j2"},
			{"HSET", "rq:job:j1", "data", "x", "ended_at", "2023-11-14T22:13:22Z", "exc_info", deflated(strings.Repeat("x", size))},
			{"HSET", "rq:job:j2", "data", "x", "ended_at", "2023-11-14T22:13:22Z"},
			{"XADD", "rq:results:j2", "1700000002000-0", "type", rqFailed, "exc_string", text}})
		for format, n := range map[string]int{"sidekiq": 1, "rq": 2} {
			o := newOffice(t)
			if got := o.adopt(c, Config{Format: format}); got != n {
				t.Errorf("%s: %d adopted, want %d", format, got, n)
			}
			for _, l := range o.letters() {
				if stack := l.History[len(l.History)-1].Stack; (len(stack) > 1000) != want {
					t.Errorf("%s %s: of %d bytes %d are there", format, l.Message.Key, size, len(stack))
				}
			}
		}
	}
}

// outline writes the keys of a database and how many elements each has.
func outline(t *testing.T, c *redis.Client) string {
	t.Helper()
	text, err := c.Eval(t.Context(), `
local out = {}
for n, key in ipairs(redis.call("KEYS", "*")) do
  local kind = redis.call("TYPE", key).ok
  local count = ({zset = "ZCARD", list = "LLEN", set = "SCARD", hash = "HLEN", stream = "XLEN", string = "STRLEN"})[kind]
  out[n] = key .. " " .. kind .. " " .. redis.call(count, key)
end
table.sort(out)
return table.concat(out, "\n")`, nil).Text()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A key of another type is an error that says so, a job that lies behind one is a damaged letter,
// and no job leaves its set unless its queue can take it.
func TestKeysOfOtherTypes(t *testing.T) {
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			c, _ := database(t)
			run(t, c, f.put)
			o := newOffice(t)
			o.adopt(c, f.Config)
			l := o.letters()[0]
			keys := c.Keys(t.Context(), "*").Val()
			slices.Sort(keys)
			extra := []string{"queue:mails", "ns:queue:mails", "queues", "asynq:{mails}:pending", "bull:mails:wait", "{b}:mails:paused",
				"bull:mails:prioritized", "rq:queue:mails", "rq:queues", "dramatiq:mails", "dramatiq:mails.msgs", "p_mails"}
			for _, key := range append(keys, extra...) {
				if key == "p_celery-task-meta-ok" || strings.HasSuffix(key, ":logs") || strings.Contains(key, "results") {
					continue // the way back does not need them
				}
				run(t, c, [][]any{{"FLUSHDB"}})
				run(t, c, f.put)
				other := []any{"SETBIT", key, "1", "1"}
				if kind := c.Type(t.Context(), key).Val(); kind == "string" {
					other = []any{"LPUSH", key, "x"}
				}
				run(t, c, [][]any{{"DEL", key}, other})
				was := dump(t, c)
				err := o.redrive(c, f.Config, nil, l)[0]
				if now := dump(t, c); err != nil && now != was {
					t.Errorf("%s: half a step, %v:\n%s", key, err, now)
				}
				if err != nil && nixie.CodeOf(err) != nixie.CodeInvalid && nixie.CodeOf(err) != nixie.CodeConflict {
					t.Errorf("%s: %v", key, err)
				}
				r, err := Open(t.Context(), another(c), f.Config)
				if err == nil {
					_, err = r.Next(t.Context(), 10)
					r.Close()
				}
				if err != nil && !strings.Contains(err.Error(), "is of another type") {
					t.Errorf("%s: %v", key, err)
				}
			}
		})
	}
}

// A job queue has no form for headers and quarantine, so it refuses them, and half a job too.
func TestRefused(t *testing.T) {
	c, _ := database(t)
	run(t, c, [][]any{{"ZADD", "dead", "1700000002", `{"queue":"mails","class":"M","jid":"j1"}`},
		{"ZADD", "dead", "1700000003", `{"queue":"mails","class":"M","jid":"j2","args":["` + strings.Repeat("x", nixie.MaxBody) + `"]}`},
		{"ZADD", "dead", "1700000004", `not a job`}})
	cfg := Config{Format: "sidekiq"}
	o := newOffice(t)
	if n := o.adopt(c, cfg); n != 3 {
		t.Fatalf("%d adopted", n)
	}
	letters := map[string]nixie.Letter{}
	for _, l := range o.letters() {
		letters[l.Message.Origin.MessageID] = l
		if l.Message.Header(headerDamage) != "" {
			letters["damaged"] = l
		}
	}
	kafka := nixie.Letter{ID: nixie.ID{1}, Message: nixie.Message{Key: "k", Origin: &nixie.Origin{System: "kafka", Channel: "mails"}}}
	for _, c2 := range []struct {
		letter nixie.Letter
		cfg    Config
		change func(*redrive.Destination)
		want   string
	}{
		{letters["j1"], Config{Format: "rq"}, nil, "is one of sidekiq: send it to format=sidekiq"},
		{kafka, cfg, nil, "is no job of sidekiq"},
		{letters["j2"], cfg, nil, "too large for the office"},
		{letters["damaged"], cfg, nil, "does not say where it came from"},
		{letters["j1"], cfg, func(d *redrive.Destination) { d.Set = []broker.RecordHeader{{Name: "by", Value: []byte("ann")}} },
			"cannot have header by"},
		{letters["j1"], cfg, func(d *redrive.Destination) { d.Quarantine, d.MaxRedrives = "aside", 1 }, "leave --quarantine out"},
		{letters["j1"], cfg, func(d *redrive.Destination) {
			d.Transform = func(_ context.Context, r *broker.Returning) error { r.Value = []byte("x"); return nil }
		}, "is no JSON object"},
	} {
		if strings.Contains(c2.want, "quarantine") {
			c2.letter.Message.Redrives = 1
		}
		if err := o.redrive(c, c2.cfg, c2.change, c2.letter)[0]; err == nil || !strings.Contains(err.Error(), c2.want) {
			t.Errorf("%v, want %s", err, c2.want)
		}
	}
	change := func(d *redrive.Destination) {
		d.Transform = func(_ context.Context, r *broker.Returning) error {
			r.Value = []byte(`{"queue":"x","class":"M","jid":"j1","args":[8]}`)
			return nil
		}
	}
	if err := o.redrive(c, cfg, change, letters["j1"])[0]; err != nil {
		t.Errorf("an edited job: %v", err)
	}
	if got := c.LRange(t.Context(), "queue:mails", 0, -1).Val(); len(got) != 1 || !strings.Contains(got[0], `"args":[8]`) ||
		c.ZCard(t.Context(), "dead").Val() != 2 {
		t.Errorf("%q", got)
	}
	for _, bad := range []Config{{Format: "resque"}, {Format: "rq", Retry: true}} {
		if bad.Check() == nil {
			t.Errorf("%+v is fine", bad)
		}
	}
}

// A server that is not there is no answer, and one that stops is none either.
func TestServerGone(t *testing.T) {
	t.Parallel()
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialerRetries: 1})
	if _, err := Open(t.Context(), c, Config{Format: "sidekiq"}); nixie.CodeOf(err) != nixie.CodeUnavailable {
		t.Error(err)
	}
	p, err := NewPublisher(c, Config{Format: "sidekiq"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	pub := broker.Publication{Channel: "q", Key: []byte("j"), Value: []byte("{}"), Headers: []broker.RecordHeader{
		{Name: headerSystem, Value: []byte("sidekiq")}, {Name: broker.HeaderRedriveID, Value: []byte("x-1")}}}
	if err := p.Publish(t.Context(), []broker.Publication{pub})()[0]; nixie.CodeOf(err) != nixie.CodeUnavailable {
		t.Error(err)
	}
}

// judge checks that an office takes the letter of a job, and that its record is the same each time.
func judge(t *testing.T, format string, j job) {
	t.Helper()
	if j.unpack != nil {
		j.unpack(&j, &inflater{left: maxPage})
	}
	r := j.record(format, deadSet{key: "set"}, broker.Site{})
	l := broker.Adopted(format, &r, "")
	if err := check.Letter(&l); err != nil {
		t.Fatal(err)
	}
	if again := j.record(format, deadSet{key: "set"}, broker.Site{}); again.ID != r.ID {
		t.Fatal("another ID")
	}
}

func FuzzSidekiq(f *testing.F) {
	for _, value := range hostileValues() {
		f.Add([]byte(value), 1.7e9, false)
	}
	f.Add([]byte(forms[0].put[0][3].(string)), -1e300, true)
	f.Fuzz(func(t *testing.T, stored []byte, score float64, retried bool) {
		judge(t, "sidekiq", sidekiqJob(stored, score, retried))
		_, _ = newSidekiq(Config{}).back(t.Context(), nil, &returning{body: stored})
	})
}

func FuzzAsynq(f *testing.F) {
	f.Add([]byte(asynqMessage()), []byte("{}"))
	f.Fuzz(func(t *testing.T, msg, payload []byte) {
		j := asynqJob(msg, "")
		j.id, j.queue = "a", "q"
		judge(t, "asynq", j)
		changed := asynqWith(msg, payload)
		if got := asynqJob(changed, ""); j.damage == "" && string(got.body) != string(payload) {
			t.Fatalf("payload %q, want %q", got.body, payload)
		}
	})
}

func FuzzBullMQ(f *testing.F) {
	f.Add("mail", "{}", "boom", `["E: a","E: b"]`, "3", "1700000000000", 1.7e12)
	f.Fuzz(func(t *testing.T, name, data, reason, stacks, made, at string, score float64) {
		judge(t, "bullmq", bullmqJob(stored{fields: map[string]string{"name": name, "data": data, "failedReason": reason,
			"stacktrace": stacks,
			"atm":        made, "timestamp": at, "finishedOn": at}}, score))
	})
}

func FuzzRQ(f *testing.F) {
	f.Add([]byte(deflated(pythonTrace)), "shop.mail(7)", "2023-11-14T22:13:20.5Z", "1700000000000-0", "2", packed(pythonTrace), "w")
	f.Fuzz(func(t *testing.T, info []byte, description, at, id, kind, trace, worker string) {
		j := rqJob(stored{fields: map[string]string{"exc_info": string(info), "description": description, "created_at": at,
			"ended_at": at}},
			[]redis.XMessage{{ID: id, Values: map[string]any{"type": kind, "exc_string": trace, "worker_name": worker}},
				{ID: id, Values: map[string]any{"type": kind, "exc_string": trace}}})
		judge(t, "rq", j)
	})
}

func FuzzDramatiq(f *testing.F) {
	f.Add(forms[7].put[1][3].(string), "x1", "mails", 1.7e12)
	f.Fuzz(func(t *testing.T, text, entry, queue string, score float64) {
		judge(t, "dramatiq", dramatiqJob(text, entry, queue, score))
		_, _ = newDramatiq(Config{}).back(t.Context(), nil, &returning{body: []byte(text), queue: queue})
	})
}

func FuzzCelery(f *testing.F) {
	f.Add([]byte(forms[8].put[2][2].(string)), "c1")
	f.Add([]byte("0"), "\n")
	f.Fuzz(func(t *testing.T, text []byte, id string) {
		judge(t, "celery", celeryJob(object(text), text, id))
		back := newCelery(Config{}).(*celery)
		back.bound = []binding{{pattern: string(text), key: id, queue: "q"}}
		_, _ = back.back(t.Context(), nil, &returning{id: id, queue: id, body: text})
	})
}

// A job that waits for a limit of RQ would pass it in its queue, so it stays.
func TestRQRateLimit(t *testing.T) {
	c, _ := database(t)
	run(t, c, forms[6].put)
	run(t, c, [][]any{{"HSET", "rq:job:r1", "rate_limit_key", "smtp", "rate_limit_concurrency", "2"}})
	cfg := Config{Format: "rq"}
	o := newOffice(t)
	o.adopt(c, cfg)
	l, was := o.letters()[0], dump(t, c)
	if got := l.Message.Header("job-rate-limit"); got != "smtp, 2 at once" {
		t.Errorf("the limit is %q", got)
	}
	if err := o.redrive(c, cfg, nil, l)[0]; nixie.CodeOf(err) != nixie.CodeConflict || !strings.Contains(err.Error(), "smtp, 2 at once") {
		t.Error(err)
	}
	if now := dump(t, c); now != was {
		t.Errorf("changed:\n%s", now)
	}
}
