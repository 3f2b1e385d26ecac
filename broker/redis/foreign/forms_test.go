package foreign

import (
	"bytes"
	"cmp"
	"compress/zlib"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
)

func deflated(text string) string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, _ = w.Write([]byte(text)) // to memory
	_ = w.Close()
	return b.String()
}

func packed(text string) string { return base64.StdEncoding.EncodeToString([]byte(deflated(text))) }

const pythonTrace = `Traceback (most recent call last):
  File "mails.py", line 7, in mail
    raise TimeoutError("slow\nsecond line")
          ^^^^^^^^^^^^^^
shop.TimeoutError: slow
second line
`

// pickle runs a command when it is read.
const pickle = "cos\nsystem\n(S'echo pwned >pwned'\ntR."

func asynqMessage() string {
	var m []byte
	text := func(n protowire.Number, value string) {
		m = protowire.AppendString(protowire.AppendTag(m, n, protowire.BytesType), value)
	}
	text(asynqType, "mail")
	text(asynqPayload, `{"n":7}`)
	text(3, "a1")
	text(4, "mails")
	m = protowire.AppendVarint(protowire.AppendTag(m, asynqRetry, protowire.VarintType), 25)
	m = protowire.AppendVarint(protowire.AppendTag(m, asynqRetried, protowire.VarintType), 25)
	text(asynqError, "boom")
	return string(m)
}

// form is a dead job as its system keeps it, what a letter tells of it, and what is in Redis after
// it was sent back.
type form struct {
	name string
	Config
	put   [][]any
	want  string
	after string
}

// forms are those of our own reading of what each system writes.
var forms = []form{
	{"Sidekiq 6", Config{Format: "sidekiq"}, [][]any{{"ZADD", "dead", "1700000002.5", `{"retry":true,"queue":"mails","class":"Mail",` +
		`"args":[7,"<&>"],"jid":"j1","created_at":1700000000.25,"enqueued_at":1700000000.5,"error_message":"boom",` +
		`"error_class":"Net::ReadTimeout",` +
		`"failed_at":1700000001.5,"retried_at":1700000002.4,"retry_count":25,"error_backtrace":"` + packed(`["a.rb:1","b.rb:2"]`) + `"}`}},
		`mails j1 at 1700000002500 of 1700000000500, first 1700000001500, 26 attempts: timeout Net::ReadTimeout "boom" "a.rb:1\nb.rb:2"
job-type: Mail`,
		`list queue:mails ["{\"args\":[7,\"\\u003c\\u0026\\u003e\"],\"class\":\"Mail\",\"created_at\":1700000000.25,` +
			`\"enqueued_at\":1800000000,` +
			`\"error_backtrace\":\"` + packed(`["a.rb:1","b.rb:2"]`) + `\",\"error_class\":\"Net::ReadTimeout\",` +
			`\"error_message\":\"boom\",` +
			`\"failed_at\":1700000001.5,\"jid\":\"j1\",\"queue\":\"mails\",\"retried_at\":1700000002.4,\"retry\":true,\"retry_count\":24}"]
set queues ["mails"]`},
	{"Sidekiq 8, retried", Config{Format: "sidekiq", Prefix: "ns", Retry: true}, [][]any{{"ZADD", "ns:retry", "1900000000",
		`{"queue":"mails",` +
			`"class":"Mail","jid":"j1","created_at":1700000000250,"enqueued_at":1700000000500,"failed_at":1700000001500,"retry_count":0}`}},
		`mails j1 at 1700000001500 of 1700000000500, first 1700000001500, 1 attempts: unknown  "" ""
job-type: Mail`,
		`list ns:queue:mails ["{\"class\":\"Mail\",\"created_at\":1700000000250,\"enqueued_at\":1800000000000,` +
			`\"failed_at\":1700000001500,` +
			`\"jid\":\"j1\",\"queue\":\"mails\",\"retry_count\":-1}"]
set ns:queues ["mails"]`},
	{"asynq", Config{Format: "asynq"}, [][]any{{"SADD", "asynq:queues", "mails"}, {"ZADD", "asynq:{mails}:archived", "1700000002", "a1"},
		{"HSET", "asynq:{mails}:t:a1", "msg", asynqMessage(), "state", "archived"}},
		`mails a1 at 1700000002000 of -, first 1700000002000, 26 attempts: unknown  "boom" ""
job-type: mail`,
		`hash asynq:{mails}:t:a1 msg=` + fmt.Sprintf("%q", asynqMessage()) + ` state="pending"
list asynq:{mails}:pending ["a1"]
set asynq:queues ["mails"]`},
	{"BullMQ 6, with a priority", Config{Format: "bullmq"}, [][]any{{"ZADD", "bull:mails:failed", "1700000002500", "5"},
		{"HSET", "bull:mails:meta", "version", "bullmq:6.7.0", "opts.maxLenEvents", "10"},
		{"HSET", "bull:mails:5", "name", "mail", "data", `{"n":7}`, "opts", `{"attempts":3}`, "failedReason", "boom", "stacktrace",
			`["TypeError: first\n  at a","TypeError: boom\n    at b"]`, "atm", "3", "timestamp", "1700000000500", "processedOn",
			"1700000002400",
			"finishedOn", "1700000002500", "priority", "3", "parentKey", "bull:all:1"},
		{"SADD", "bull:all:1:dependencies", "other"}, {"HSET", "bull:all:1", "name", "all"}, {"HSET", "bull:all:1:failed",
			"bull:mails:5", "x"},
		{"RPUSH", "bull:mails:5:logs", "one", "two"}},
		`mails 5 at 1700000002500 of 1700000000500, first 1700000002500, 3 attempts: handler TypeError "boom" "TypeError: boom\n    at b"
job-type: mail
job-opts: {"attempts":3}
job-failure: 1 before the last: TypeError: first
job-log: one
job-log: two`,
		`hash bull:all:1 name="all"
hash bull:mails:5 atm="3" data="{\"n\":7}" name="mail" opts="{\"attempts\":3}" parentKey="bull:all:1" priority="3" ` +
			`stacktrace="[\"TypeError: first\\n  at a\",\"TypeError: boom\\n    at b\"]" timestamp="1700000000500"
hash bull:mails:meta opts.maxLenEvents="10" version="bullmq:6.7.0"
list bull:mails:5:logs ["one" "two"]
set bull:all:1:dependencies ["bull:mails:5" "other"]
stream bull:mails:events waiting 5 failed
string bull:mails:pc "1"
zset bull:mails:marker 0=0
zset bull:mails:prioritized 5=12884901889`},
	{"BullMQ 5, paused", Config{Format: "bullmq", Prefix: "{b}"}, [][]any{{"ZADD", "{b}:mails:failed", "1700000002500", "5"},
		{"HSET", "{b}:mails:meta", "version", "bullmq:5.1.0", "paused", "1"},
		{"HSET", "{b}:mails:5", "name", "mail", "data", `{"n":7}`, "opts", `{"lifo":true}`, "attemptsMade", "1"}},
		`mails 5 at 1700000002500 of -, first 1700000002500, 1 attempts: unknown  "" ""
job-type: mail
job-opts: {"lifo":true}`,
		`hash {b}:mails:5 attemptsMade="1" data="{\"n\":7}" name="mail" opts="{\"lifo\":true}"
hash {b}:mails:meta paused="1" version="bullmq:5.1.0"
list {b}:mails:paused ["5"]
stream {b}:mails:events waiting 5 failed`},
	{"Bull 4", Config{Format: "bullmq"}, [][]any{{"ZADD", "bull:mails:failed", "1700000002500", "5"},
		{"HSET", "bull:mails:5", "name", "__default__", "data", `{"n":7}`, "failedReason", "boom", "finishedOn", "1700000002500"}},
		`mails 5 at 1700000002500 of -, first 1700000002500, 0 attempts: unknown  "boom" ""
job-type: __default__`,
		`hash bull:mails:5 data="{\"n\":7}" name="__default__" retriedOn="1800000000000"
list bull:mails:wait ["5"]`},
	{"RQ", Config{Format: "rq"}, [][]any{{"ZADD", "rq:failed:mails", "1731536000", "r1"},
		{"HSET", "rq:job:r1", "data", deflated(pickle), "description", "shop.mail(7)", "created_at", "2023-11-14T22:13:20.500000Z",
			"ended_at",
			"2023-11-14T22:13:22.500000Z", "worker_name", "w", "status", "failed", "exc_info", deflated(pythonTrace), "origin", "mails"},
		{"XADD", "rq:results:r1", "1700000001500-0", "type", "2", "worker_name", "w0", "exc_string", packed("KeyError: 'a'")},
		{"XADD", "rq:results:r1", "1700000001600-0", "type", "1"},
		{"XADD", "rq:results:r1", "1700000002499-0", "type", "2", "worker_name", "w", "exc_string", packed(pythonTrace)}},
		`mails r1 at 1700000002500 of 1700000000500, first 1700000001500, 0 attempts: timeout shop.TimeoutError "slow\nsecond line" ` +
			fmt.Sprintf("%q", pythonTrace) + ` on w
before at 1700000001500: unknown  "KeyError: 'a'" on w0
job-type: shop.mail
job-description: shop.mail(7)`,
		`hash rq:job:r1 created_at="2023-11-14T22:13:20.500000Z" data=` + fmt.Sprintf("%q",
			deflated(pickle)) + ` description="shop.mail(7)" ` +
			`ended_at="" enqueued_at="2027-01-15T08:00:00.000000Z" origin="mails" started_at="" status="queued" worker_name="w"
list rq:queue:mails ["r1"]
set rq:queues ["rq:queue:mails"]
stream rq:results:r1 2 w0 ` + packed("KeyError: 'a'") + ` 1 2 w ` + packed(pythonTrace)},
	{"Dramatiq", Config{Format: "dramatiq"}, [][]any{{"ZADD", "dramatiq:mails.XQ", "1700000002500", "x1"},
		{"HSET", "dramatiq:mails.XQ.msgs", "x1", `{"queue_name":"mails","actor_name":"mail","args":[7],"kwargs":{},` +
			`"options":{"retries":1,` +
			`"redis_message_id":"x1","traceback":"KeyError: 'a'","requeue_timestamp":1700000001500,"mine":1},"message_id":"m1",` +
			`"message_timestamp":1700000000500}`}},
		`mails m1 at 1700000002500 of 1700000000500, first 1700000001500, 2 attempts: unknown  "KeyError: 'a'" "KeyError: 'a'"
job-type: mail
job-error: it is that of the attempt before the last, whose own Dramatiq does not keep`,
		`hash dramatiq:mails.msgs x1="{\"actor_name\":\"mail\",\"args\":[7],\"kwargs\":{},\"message_id\":\"m1\",` +
			`\"message_timestamp\":1700000000500,\"options\":{\"mine\":1,\"redis_message_id\":\"x1\"},\"queue_name\":\"mails\"}"
list dramatiq:mails ["x1"]`},
	{"Celery", Config{Format: "celery", Prefix: "p_"}, [][]any{
		{"SADD", "p__kombu.binding.mails", "mails\x06\x16\x06\x16mails"}, {"SET", "p_celery-task-meta-ok", `{"status":"SUCCESS"}`},
		{"SET", "p_celery-task-meta-c1", `{"status":"FAILURE","result":{"exc_type":"Boom","exc_message":["a","b"]},"traceback":null,` +
			`"date_done":"2023-11-14T22:13:22.500000+00:00","name":"mail","args":[7],"kwargs":{"k":"x"},"worker":"w@h","retries":3,` +
			`"queue":"mails"}`}},
		`mails c1 at 1700000002500 of -, first 1700000002500, 4 attempts: handler Boom "a, b" "" on w@h
job-type: mail`,
		`list p_mails ["{\"body\":` +
			`\"W1s3XSx7ImsiOiJ4In0seyJjYWxsYmFja3MiOm51bGwsImNoYWluIjpudWxsLCJjaG9yZCI6bnVsbCwiZXJyYmFja3MiOm51bGx9XQ==\",` +
			`\"content-encoding\":\"utf-8\",\"content-type\":\"application/json\",\"headers\":{\"argsrepr\":\"[7]\",\"eta\":null,` +
			`\"expires\":null,` +
			`\"group\":null,\"id\":\"c1\",\"ignore_result\":false,\"kwargsrepr\":\"{\\\"k\\\":\\\"x\\\"}\",\"lang\":\"py\",\"origin\":` +
			`\"nixie\",` +
			`\"parent_id\":null,\"retries\":0,\"root_id\":\"c1\",\"task\":\"mail\",\"timelimit\":[null,null]},\"properties\":` +
			`{\"body_encoding\":` +
			`\"base64\",\"correlation_id\":\"c1\",\"delivery_info\":{\"exchange\":\"\",\"routing_key\":\"mails\"},\"delivery_mode\":2,` +
			`\"delivery_tag\":\"c1\",\"priority\":0,\"reply_to\":\"\"}}"]
set p__kombu.binding.mails ["mails\x06\x16\x06\x16mails"]
string p_celery-task-meta-ok "{\"status\":\"SUCCESS\"}"`},
}

// A job in each form comes in with all that is known of it, and goes back as its system has it.
func TestForms(t *testing.T) {
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			c, _ := database(t)
			f.Clock = func() time.Time { return time.Unix(1_800_000_000, 0) }
			run(t, c, f.put)
			o := newOffice(t)
			if n, again := o.adopt(c, f.Config), o.adopt(c, f.Config); n != 1 || again != 0 {
				t.Fatalf("%d adopted, then %d", n, again)
			}
			l := o.letters()[0]
			if got := told(&l); got != f.want {
				t.Errorf("told\n%s\nwant\n%s", got, f.want)
			}
			o.mustRedrive(c, f.Config, l)
			o.mustRedrive(c, f.Config, l) // a repeat whose answer was lost
			if got := dump(t, c); got != f.after {
				t.Errorf("after\n%s\nwant\n%s", got, f.after)
			}
			if n := o.adopt(c, f.Config); n != 0 {
				t.Errorf("%d are dead", n)
			}
		})
	}
}

// run runs commands.
func run(t testing.TB, c *redis.Client, commands [][]any) {
	t.Helper()
	for _, args := range commands {
		if err := c.Do(t.Context(), args...).Err(); err != nil {
			t.Fatalf("%q: %v", args, err)
		}
	}
}

// told writes what a letter tells.
func told(l *nixie.Letter) string {
	var b strings.Builder
	m, f := &l.Message, &l.History[len(l.History)-1]
	enqueued := "-"
	if at := m.Origin.Timestamp; !at.IsZero() {
		enqueued = fmt.Sprint(at.UnixMilli())
	}
	fmt.Fprintf(&b, "%s %s at %d of %s, first %d, %d attempts: %s %s %q %q", m.Queue, m.Origin.MessageID, l.DiedAt.UnixMilli(), enqueued,
		l.FirstFailedAt.UnixMilli(), m.Attempts, f.Reason, f.Type, f.Text, f.Stack)
	if f.Node != "" {
		fmt.Fprint(&b, " on ", f.Node)
	}
	for _, f := range l.History[:len(l.History)-1] {
		fmt.Fprintf(&b, "\nbefore at %d: %s %s %q on %s", f.FailedAt.UnixMilli(), f.Reason, f.Type, f.Text, f.Node)
	}
	for _, h := range m.Headers {
		if !slices.Contains([]string{headerSystem, headerSet, headerScore, broker.HeaderMade}, h.Name) {
			fmt.Fprintf(&b, "\n%s: %s", h.Name, h.Value)
		}
	}
	return b.String()
}

// dump writes all that a database holds, without the marks of redrives.
func dump(t testing.TB, c *redis.Client) string {
	t.Helper()
	keys, err := c.Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, key := range keys {
		if strings.HasPrefix(key, "nixie:sent:") {
			if ttl := c.PTTL(t.Context(), key).Val(); ttl <= 0 || ttl > rememberSent {
				t.Errorf("mark %s stays for %s", key, ttl)
			}
			continue
		}
		kind := c.Type(t.Context(), key).Val()
		lines = append(lines, kind+" "+key+" "+valueOf(t, c, kind, key))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func valueOf(t testing.TB, c *redis.Client, kind, key string) string {
	ctx := t.Context()
	var parts []string
	switch kind {
	case "string":
		return fmt.Sprintf("%q", c.Get(ctx, key).Val())
	case "list":
		return fmt.Sprintf("%q", c.LRange(ctx, key, 0, -1).Val())
	case "set":
		all := c.SMembers(ctx, key).Val()
		slices.SortFunc(all, cmp.Compare[string])
		return fmt.Sprintf("%q", all)
	case "zset":
		for _, z := range c.ZRangeWithScores(ctx, key, 0, -1).Val() {
			parts = append(parts, fmt.Sprintf("%s=%.0f", z.Member, z.Score))
		}
	case "hash":
		for name, value := range c.HGetAll(ctx, key).Val() {
			parts = append(parts, fmt.Sprintf("%s=%q", name, value))
		}
		slices.Sort(parts)
	case "stream":
		for _, m := range c.XRange(ctx, key, "-", "+").Val() {
			for _, name := range []string{"event", "jobId", "prev", "type", "worker_name", "exc_string"} {
				if value, ok := m.Values[name].(string); ok {
					parts = append(parts, value)
				}
			}
		}
	}
	return strings.Join(parts, " ")
}
