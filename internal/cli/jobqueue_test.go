package cli

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/nixie-go/nixie/internal/proof/testservers"
)

// Stories of other job queues run on a server of their own, as $REDIS.
func TestJobQueueStories(t *testing.T) {
	server := testservers.OwnRedis(t)
	scriptsOn(t, "jobqueue/*", func(env *testscript.Env) (string, error) {
		env.Setenv("REDIS", server.Addr)
		return "sqlite://" + env.WorkDir + "/s.db", nil
	})
}

// runRedis sends a command to the server and prints its answer: redis DB COMMAND ARG…, where an
// argument @FILE stands for the text of a file.
func runRedis(ts *testscript.TestScript, _ bool, args []string) {
	c, err := redis.ParseURL("redis://" + ts.Getenv("REDIS") + "/" + args[0])
	ts.Check(err)
	client := redis.NewClient(c)
	defer func() { _ = client.Close() }()
	var words []any
	for _, a := range args[1:] {
		if name, ok := strings.CutPrefix(a, "@"); ok {
			a = strings.TrimSpace(ts.ReadFile(name))
		}
		words = append(words, a)
	}
	answer, err := client.Do(context.Background(), words...).Result()
	ts.Check(err)
	fmt.Fprintln(ts.Stdout(), answer)
}
