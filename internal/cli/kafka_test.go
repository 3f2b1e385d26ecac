package cli_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// startBroker starts a broker in this process for a script: kafka start [NAME…].
func startBroker(ts *testscript.TestScript, topics []string) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, topics...),
		kfake.BrokerConfigs(map[string]string{"group.initial.rebalance.delay.ms": "0"}))
	ts.Check(err)
	ts.Defer(cluster.Close)
	ts.Setenv("KAFKA", cluster.ListenAddrs()[0])
}

// useKafka makes a broker, fills topics, and prints what is on them:
//
//	kafka start TOPIC…
//	kafka put TOPIC KEY VALUE
//	kafka show TOPIC HEADER…
func useKafka(ts *testscript.TestScript, _ bool, args []string) {
	if args[0] == "start" {
		startBroker(ts, args[1:])
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(ts.Getenv("KAFKA")), kgo.ConsumeTopics(args[1]))
	ts.Check(err)
	defer client.Close()
	if args[0] == "put" {
		ts.Check(client.ProduceSync(ctx, &kgo.Record{Topic: args[1], Key: []byte(args[2]), Value: []byte(args[3])}).FirstErr())
		return
	}
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, args[1])
	ts.Check(err)
	left := int64(0)
	ends.Each(func(o kadm.ListedOffset) { left += o.Offset })
	for left > 0 {
		fetches := client.PollFetches(ctx)
		ts.Check(ctx.Err())
		left -= int64(fetches.NumRecords())
		fetches.EachRecord(func(r *kgo.Record) {
			fmt.Fprintf(ts.Stdout(), "%s %s", r.Key, r.Value)
			for _, name := range args[2:] {
				for _, h := range r.Headers {
					if h.Key == name {
						fmt.Fprintf(ts.Stdout(), " %s=%s", strings.TrimPrefix(name, "x-"), h.Value)
					}
				}
			}
			fmt.Fprintln(ts.Stdout())
		})
	}
}
