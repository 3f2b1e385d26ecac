package foreign

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/redrive"
)

// benchJobs are the jobs of the dead set of a benchmark.
const benchJobs = 20_000

// BenchmarkGiveBack gives all jobs of a dead set back, in the groups in which a redrive sends them.
func BenchmarkGiveBack(b *testing.B) {
	for _, format := range Formats() {
		b.Run(format, func(b *testing.B) {
			c, _ := database(b)
			cfg := Config{Format: format}
			for b.Loop() {
				b.StopTimer()
				letters := fillDead(b, c, cfg)
				p, err := NewPublisher(another(c), cfg)
				if err != nil {
					b.Fatal(err)
				}
				send, err := redrive.Destination{To: p}.Letters()
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				for at := 0; at < len(letters); at += redrive.DefaultSend {
					for _, err := range send(context.Background(), letters[at:at+redrive.DefaultSend]) {
						if err != nil {
							b.Fatal(err)
						}
					}
				}
				b.StopTimer()
				p.Close()
				b.StartTimer()
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*benchJobs), "µs/job")
		})
	}
}

// fillDead fills the dead set of a job queue and returns its letters, as an office has them.
func fillDead(b *testing.B, c *redis.Client, cfg Config) []nixie.Letter {
	b.Helper()
	ctx := b.Context()
	if err := c.FlushDB(ctx).Err(); err != nil {
		b.Fatal(err)
	}
	args := `[7,"` + strings.Repeat("x", 200) + `"]`
	pipe := c.Pipeline()
	pipe.SAdd(ctx, "asynq:queues", "mails")
	pipe.SAdd(ctx, "_kombu.binding.mails", "mails\x06\x16\x06\x16mails")
	for n := range benchJobs {
		id, at := fmt.Sprintf("j%d", n), float64(1700000000+n)
		one := redis.Z{Score: at * 1000, Member: id}
		switch cfg.Format {
		case "sidekiq":
			pipe.ZAdd(ctx, "dead", redis.Z{Score: at, Member: fmt.Sprintf(`{"retry":true,"queue":"mails","class":"Mail","args":%s,`+
				`"jid":"%s","created_at":1700000000.25,"enqueued_at":1700000000.5,"error_message":"boom","retry_count":25}`, args, id)})
		case "asynq":
			pipe.ZAdd(ctx, "asynq:{mails}:archived", redis.Z{Score: at, Member: id})
			pipe.HSet(ctx, "asynq:{mails}:t:"+id, "msg", asynqMessage(), "state", "archived")
		case "bullmq":
			pipe.ZAdd(ctx, "bull:mails:failed", one)
			pipe.HSet(ctx, "bull:mails:"+id, "name", "mail", "data", args, "opts", `{"attempts":3}`, "failedReason", "boom",
				"atm", "3", "timestamp", "1700000000500", "finishedOn", fmt.Sprintf("%.0f", at*1000))
		case "rq":
			pipe.ZAdd(ctx, "rq:failed:mails", redis.Z{Score: at, Member: id})
			pipe.HSet(ctx, "rq:job:"+id, "data", deflated(args), "description", "shop.mail(7)", "origin", "mails", "status", "failed",
				"created_at", "2023-11-14T22:13:20.500000Z", "ended_at", fmt.Sprintf("2023-11-14T22:13:%02d.500000Z", n%60))
		case "dramatiq":
			pipe.ZAdd(ctx, "dramatiq:mails.XQ", one)
			pipe.HSet(ctx, "dramatiq:mails.XQ.msgs", id, fmt.Sprintf(`{"queue_name":"mails","actor_name":"mail","args":%s,"kwargs":{},`+
				`"options":{"retries":1,"redis_message_id":"%s"},"message_id":"m%d","message_timestamp":1700000000500}`, args, id, n))
		case "celery":
			pipe.Set(ctx, "celery-task-meta-"+id, fmt.Sprintf(`{"status":"FAILURE","result":{"exc_type":"Boom","exc_message":["a"]},`+
				`"traceback":null,"date_done":"2023-11-14T22:13:22.500000+00:00","name":"mail","args":%s,"kwargs":{},"worker":"w@h",`+
				`"queue":"mails"}`, args), 0)
		}
		if n%1000 == 999 {
			if _, err := pipe.Exec(ctx); err != nil {
				b.Fatal(err)
			}
		}
	}
	records := readAll(b, c, cfg)
	letters := make([]nixie.Letter, len(records))
	for i := range records {
		letters[i] = broker.Adopted(cfg.Format, &records[i], "")
	}
	return letters
}
