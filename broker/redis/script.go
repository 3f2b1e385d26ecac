package redis

import (
	"context"
	"crypto/sha1" //nolint:gosec // Redis names scripts by it
	_ "embed"
	"encoding/hex"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Script has all that a mailbox does, in the language of the server. Each call of it is one step,
// which happens as a whole or not at all. docs/redis.md tells how other programs use it.
//
//go:embed mailbox.lua
var Script string

// scriptName is the name under which the server keeps the script.
var scriptName = sync.OnceValue(func() string {
	sum := sha1.Sum([]byte(Script)) //nolint:gosec // Redis names scripts by it
	return hex.EncodeToString(sum[:])
})

// keys are those of one mailbox, as the script wants them.
type keys []string

// keysOf returns the keys of a mailbox. Their common tag puts them into one slot of a cluster.
func keysOf(mailbox string) keys {
	tag := "nixie:{" + mailbox + "}:"
	return keys{tag + "pending", tag + "held", tag + "records", tag + "counts", tag + "holders", tag + "wake"}
}

// remembering returns the keys for the verb once.
func (k keys) remembering(mailbox string) keys {
	return append(slices.Clip(k), "nixie:{"+mailbox+"}:seen")
}

// wake returns the key on which receivers block.
func (k keys) wake() string { return k[5] }

// call runs a verb of the script, and loads the script if the server does not know it. It repeats
// nothing else: the verb may have happened.
func call(ctx context.Context, c redis.UniversalClient, cmd redis.Cmder) error {
	err := c.Process(ctx, cmd)
	if !unknownScript(err) {
		return err
	}
	if err := load(ctx, c); err != nil {
		return err
	}
	return c.Process(ctx, cmd)
}

// load gives the script to the server, or to each server of a cluster.
func load(ctx context.Context, c redis.UniversalClient) error {
	if cluster, ok := c.(*redis.ClusterClient); ok {
		return cluster.ForEachMaster(ctx, func(ctx context.Context, one *redis.Client) error {
			return one.ScriptLoad(ctx, Script).Err()
		})
	}
	return c.ScriptLoad(ctx, Script).Err()
}

func unknownScript(err error) bool { return err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT") }

// arguments makes the arguments of a command that runs a verb.
func (k keys) arguments(verb string, room int) []any {
	args := make([]any, 0, 4+len(k)+room)
	args = append(args, "evalsha", scriptName(), len(k))
	for _, key := range k {
		args = append(args, key)
	}
	return append(args, verb)
}

// list runs a verb that answers with a list.
func (k keys) list(ctx context.Context, c redis.UniversalClient, verb string, more ...any) ([]string, error) {
	cmd := redis.NewStringSliceCmd(ctx, append(k.arguments(verb, len(more)), more...)...)
	err := call(ctx, c, cmd)
	return cmd.Val(), err
}

// text runs a verb that answers with one string.
func (k keys) text(ctx context.Context, c redis.UniversalClient, verb string, more ...any) (string, error) {
	cmd := redis.NewStringCmd(ctx, append(k.arguments(verb, len(more)), more...)...)
	err := call(ctx, c, cmd)
	return cmd.Val(), err
}
