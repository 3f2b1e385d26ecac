package cli_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/broker/redis"
	"github.com/nixie-go/nixie/internal/proof/testservers"
)

// The stories share a server, and each has mailboxes of its own.
func TestRedisStories(t *testing.T) {
	t.Parallel()
	server := testservers.OwnRedis(t)
	locked := testservers.OwnRedis(t, "--requirepass", "s3cret")
	runScripts(t, "redis", "sqlite", func(env *testscript.Env) string {
		env.Setenv("REDIS", "redis://"+server.Addr)
		env.Setenv("LOCKED", "redis://"+locked.Addr)
		return "sqlite://" + filepath.Join(env.WorkDir, "s.db")
	})
}

// useRedis fills mailboxes, and prints what can be received from them:
//
//	redis put MAILBOX KEY VALUE…
//	redis show MAILBOX HEADER…
func useRedis(ts *testscript.TestScript, _ bool, args []string) {
	at, err := redis.ParseURL(ts.Getenv("REDIS"))
	ts.Check(err)
	to, err := redis.Connect(at)
	ts.Check(err)
	defer to.Close()
	ctx, name := context.Background(), args[1]
	if args[0] == "show" {
		records, err := to.Browse(ctx, name, 0, 100)
		ts.Check(err)
		if len(records) == 0 {
			fmt.Fprintln(ts.Stdout(), "nothing")
		}
		for _, r := range records {
			fmt.Fprintf(ts.Stdout(), "%s %s%s\n", r.Key, r.Value, someHeaders(r.Headers, args[2:]))
		}
		return
	}
	ts.Check(to.Create(ctx, name, nil))
	for _, value := range args[3:] {
		ts.Check(to.Publish(ctx, []broker.Publication{{Channel: name, Key: []byte(args[2]), Value: []byte(value)}})()[0])
	}
}

// someHeaders writes the headers of these names, in the order of the names.
func someHeaders(headers []broker.RecordHeader, names []string) (text string) {
	for _, name := range names {
		for _, h := range headers {
			if h.Name == name {
				text += fmt.Sprintf(" %s=%s", name, h.Value)
			}
		}
	}
	return text
}
