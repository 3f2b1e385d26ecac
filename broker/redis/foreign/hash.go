package foreign

import (
	"context"
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"
)

// hashes reads some fields of many hashes in one round trip. A hash that is missing has none; one
// of another type has damage.
func hashes(ctx context.Context, c redis.UniversalClient, keys, names []string) ([]stored, error) {
	pipe := c.Pipeline()
	answers := make([]*redis.SliceCmd, len(keys))
	for i, key := range keys {
		answers[i] = pipe.HMGet(ctx, key, names...)
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	all := make([]stored, len(keys))
	for i, a := range answers {
		values, err := a.Result()
		if isWrongType(err) {
			all[i].damage = "the key of its data is of another type"
			continue
		}
		if err != nil {
			return nil, readError(keys[i], err)
		}
		all[i].fields = map[string]string{}
		for n, name := range names {
			if text, ok := values[n].(string); ok {
				all[i].fields[name] = text
			}
		}
		if len(all[i].fields) == 0 {
			all[i].damage = "its data is gone, and only its ID lies there"
		}
	}
	return all, nil
}

// stored holds fields of a hash.
type stored struct {
	fields map[string]string
	damage string
}

// isWrongType reports whether a command failed because the key is of another type.
func isWrongType(err error) bool {
	var said redis.Error
	return errors.As(err, &said) && strings.HasPrefix(said.Error(), "WRONGTYPE")
}

// members returns the entries of a set as texts.
func members(entries []redis.Z) []string {
	list := make([]string, len(entries))
	for i, e := range entries {
		list[i], _ = e.Member.(string)
	}
	return list
}

// prefixed returns names after a prefix.
func prefixed(prefix string, names []string) []string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = prefix + name
	}
	return list
}
