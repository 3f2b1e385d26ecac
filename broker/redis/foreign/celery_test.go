package foreign

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
)

// result writes a result as Celery keeps it of a task that failed, with some more fields.
func result(queue, more string) string {
	return fmt.Sprintf(`{"status":"FAILURE","result":{"exc_type":"Boom","exc_message":["a"]},"traceback":"trace","children":[],`+
		`"date_done":"2023-11-14T22:13:22.500000+00:00","name":"mail","args":[7],"kwargs":{},"worker":"w@h","retries":0,"queue":%q%s}`,
		queue, more)
}

func bound(key, pattern, queue string) string { return key + "\x06\x16" + pattern + "\x06\x16" + queue }

// A task goes only into a list that a binding names, under the prefix that kombu has. Else its
// result stays.
func TestCeleryQueues(t *testing.T) {
	mails := bound("mails", "", "mails")
	topic := bound("media.#", `^media\..*?$`, "media")
	for _, c := range []struct {
		name, prefix string
		results      string // the prefix of results
		bindings     map[string][]string
		queue        string // as the result tells it
		want         string // the list that has the task, or why it does not go
	}{
		{"by name", "", "", map[string][]string{"_kombu.binding.mails": {mails}}, "mails", "mails"},
		{"RabbitMQ is the broker", "", "", nil, "mails", `no key _kombu.binding.* of this database names its queue "mails"`},
		{"another queue", "", "", map[string][]string{"_kombu.binding.mails": {mails}}, "post", "names its queue \"post\""},
		{"a broadcast", "", "", map[string][]string{"_kombu.binding.w.pidbox": {bound("", "", "w.pidbox")}}, "mails", "names its queue"},
		{"prefix without an end", "shop", "shop_", map[string][]string{"shop_kombu.binding.mails": {mails}}, "mails", "shopmails"},
		{"prefix of results", "shop_", "shop_", map[string][]string{"shop_kombu.binding.mails": {mails}}, "mails", "shopmails"},
		{"prefix with an end", "shop_", "shop_", map[string][]string{"shop__kombu.binding.mails": {mails}}, "mails", "shop_mails"},
		{"prefix with a colon", "shop:", "shop:", map[string][]string{"shop:_kombu.binding.mails": {mails}}, "mails", "shop:mails"},
		{"both prefixes", "shop_", "shop_", map[string][]string{"shop__kombu.binding.mails": {mails}, "shop_kombu.binding.mails": {mails}},
			"mails", "shop_mails"},
		{"another prefix", "shop", "shop_", map[string][]string{"_kombu.binding.mails": {mails}}, "mails", "no key shop_kombu.binding.*"},
		{"binding key", "", "", map[string][]string{"_kombu.binding.m": {topic}}, "media.#", "media"},
		{"routing key", "", "", map[string][]string{"_kombu.binding.m": {topic}}, "media.video.x", "media"},
		{"no routing key", "", "", map[string][]string{"_kombu.binding.m": {topic}}, "mediavideo", "names its queue"},
		{"direct key", "", "", map[string][]string{"_kombu.binding.m": {bound("k", "", "mails")}}, "k", "mails"},
		{"bound twice", "", "", map[string][]string{"_kombu.binding.m": {topic}, "_kombu.binding.n": {topic}}, "media.#", "media"},
		{"two queues", "", "", map[string][]string{"_kombu.binding.m": {topic, bound("media.#", `^media\..*?$`, "all")}}, "media.#",
			`its routing key "media.#" leads to 2 queues`},
		{"a name before a key", "", "", map[string][]string{"_kombu.binding.m": {bound("#", `^.*?$`, "audit"), mails}}, "mails", "mails"},
		{"damaged bindings", "", "", map[string][]string{"_kombu.binding.m": {"x", "\x06\x16\x06\x16", bound("(", `^($`, "bad"), topic}},
			"media.x", "media"},
	} {
		t.Run(c.name, func(t *testing.T) {
			db, _ := database(t)
			cfg := Config{Format: "celery", Prefix: c.prefix}
			run(t, db, [][]any{{"SET", c.results + "celery-task-meta-c1", result(c.queue, "")}})
			for key, list := range c.bindings {
				for _, member := range list {
					run(t, db, [][]any{{"SADD", key, member}})
				}
			}
			o := newOffice(t)
			if n := o.adopt(db, cfg); n != 1 {
				t.Fatalf("%d adopted", n)
			}
			was := dump(t, db)
			err := o.redrive(db, cfg, nil, o.letters()[0])[0]
			if err != nil {
				if !strings.Contains(err.Error(), c.want) || !nixieRefuses(err) || dump(t, db) != was {
					t.Errorf("%v, want %s\n%s", err, c.want, dump(t, db))
				}
				return
			}
			if n := db.LLen(t.Context(), c.want).Val(); n != 1 || db.Exists(t.Context(), c.results+"celery-task-meta-c1").Val() != 0 {
				t.Errorf("%d in %s:\n%s", n, c.want, dump(t, db))
			}
		})
	}
}

func nixieRefuses(err error) bool {
	return nixie.CodeOf(err) == nixie.CodeInvalid || nixie.CodeOf(err) == nixie.CodeConflict
}

// A queue that is unbound between the look and the step gets nothing.
func TestCeleryUnbound(t *testing.T) {
	db, _ := database(t)
	run(t, db, [][]any{{"SET", "celery-task-meta-c1", result("mails", "")},
		{"SADD", "_kombu.binding.mails", bound("mails", "", "mails")}})
	o := newOffice(t)
	o.adopt(db, Config{Format: "celery"})
	s := newCelery(Config{}).(*celery)
	p := &Publisher{client: db, format: "celery", system: s, clock: time.Now}
	s.bound, _ = s.bindings(t.Context(), db)
	run(t, db, [][]any{{"DEL", "_kombu.binding.mails"}})
	was := dump(t, db)
	if err := o.through(p, nil, o.letters()[0])[0]; err == nil || !strings.Contains(err.Error(), "no longer bound") {
		t.Error(err)
	}
	if now := dump(t, db); now != was {
		t.Errorf("changed:\n%s", now)
	}
}

// A task that waits for others, or others for it, needs a person. One that no worker ran stays.
func TestCeleryAlone(t *testing.T) {
	db, _ := database(t)
	later := strings.NewReplacer("22.500000", "22.501000", `"w@h"`, "null", `"queue":"mails"`, `"queue":null`)
	other := strings.NewReplacer(`"trace"`, `"another"`)
	run(t, db, [][]any{
		{"SADD", "_kombu.binding.mails", bound("mails", "", "mails")},
		{"SET", "celery-task-meta-plain", other.Replace(result("mails", ""))},
		{"SET", "celery-task-meta-first", result("mails", "")},
		{"SET", "celery-task-meta-rest", later.Replace(result("mails", ""))},
		{"SET", "celery-task-meta-group", other.Replace(result("mails", `,"group_id":"g"`))},
		{"SET", "celery-task-meta-step", other.Replace(result("mails", `,"parent_id":"p"`))},
		{"SET", "celery-task-meta-mother", strings.Replace(other.Replace(result("mails", "")), "[]", `[[["k",null],null]]`, 1)},
		{"SET", "celery-task-meta-body", `{"status":"FAILURE","result":{"exc_type":"ChordError"},"date_done":"2023-11-14T22:13:22Z"}`},
	})
	cfg := Config{Format: "celery"}
	o := newOffice(t)
	if n, again := o.adopt(db, cfg), o.adopt(db, cfg); n != 7 || again != 0 {
		t.Fatalf("%d adopted, then %d", n, again)
	}
	want := map[string]string{"plain": "", "first": "review: what comes after it in its chain does not run",
		"rest": "never: it comes after a task that failed", "group": "review: the body of its chord does not run",
		"step": "review: what comes after it in its chain does not run", "mother": "review: the tasks that it began run twice",
		"body": "never: it is the body of a chord, and a task of that failed"}
	for _, l := range o.letters() {
		id, is := l.Message.Origin.MessageID, ""
		if l.NeedsReview {
			is = "review: " + l.Message.Header(broker.HeaderReview)
		}
		if !l.Redrivable {
			is = "never: " + l.Message.Header(broker.HeaderNeverRan)
		}
		if is != want[id] {
			t.Errorf("%s: %q, want %q", id, is, want[id])
		}
		old := l // of a version that marked none
		old.Message.Headers = slices.DeleteFunc(slices.Clone(l.Message.Headers), func(h nixie.Header) bool {
			return h.Name == broker.HeaderReview || h.Name == broker.HeaderNeverRan
		})
		if id == "group" || id == "step" || id == "mother" {
			if err := o.redrive(db, cfg, nil, old)[0]; err == nil || !strings.Contains(err.Error(), "did not know") {
				t.Errorf("%s: an old letter goes: %v", id, err)
			}
		}
		err := o.redrive(db, cfg, nil, l)[0] // with force
		if left := db.Exists(t.Context(), "celery-task-meta-"+id).Val() == 1; l.Redrivable != (err == nil) || l.Redrivable == left {
			t.Errorf("%s: left %v, %v", id, left, err)
		}
	}
}
