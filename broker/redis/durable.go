package redis

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/nixie-go/nixie"
)

// durable refuses a server that may forget what it has confirmed, and warns of one that may forget
// the last second.
func durable(ctx context.Context, c redis.UniversalClient, cfg Config) error {
	info, err := c.Info(ctx, "server", "memory", "persistence").Result()
	if err != nil {
		return explainStart("look at the server", err, &cfg.Address)
	}
	if v := infoField(info, "redis_version"); olderThan(v, 6, 2) {
		return nixie.Errorf(nixie.CodeInvalid, "the server is Redis %s: use 6.2 or later, or Valkey", v)
	}
	fsync := setting(ctx, c, "appendfsync")
	found := weaknesses(info, fsync)
	if len(found) > 0 && !cfg.Relaxed {
		return found[0]
	}
	for _, f := range found {
		cfg.Warn(f)
	}
	if fsync == "everysec" {
		cfg.Warn(nixie.Errorf(nixie.CodeInvalid,
			"appendfsync is everysec: the machine's end loses up to two seconds of what was confirmed; set it to always to lose nothing"))
	}
	return nil
}

// weaknesses lists the settings for which a server is refused.
func weaknesses(info, fsync string) (found []error) {
	refuse := func(name, value, why, fix string) {
		found = append(found, nixie.Errorf(nixie.CodeInvalid, "%s is %s: %s; %s, or add relaxed=true to the URL", name, value, why, fix))
	}
	if p := infoField(info, "maxmemory_policy"); p != "" && p != "noeviction" {
		refuse("maxmemory-policy", p, "the server may delete records when its memory is full", "set it to noeviction")
	}
	if infoField(info, "aof_enabled") == "0" {
		refuse("appendonly", "no", "a restart loses what was sent since the last snapshot", "set it to yes")
	} else if fsync == "no" {
		refuse("appendfsync", fsync, "the machine's end loses what the system had not written yet, usually up to 30 seconds",
			"set it to always or everysec")
	}
	return found
}

// setting asks for a setting of the server. It is empty if the server does not tell.
func setting(ctx context.Context, c redis.UniversalClient, name string) string {
	values, err := c.ConfigGet(ctx, name).Result()
	if err != nil { // managed servers have no CONFIG
		return ""
	}
	return values[name]
}

func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func olderThan(version string, major, minor int) bool {
	first, rest, _ := strings.Cut(version, ".")
	second, _, _ := strings.Cut(rest, ".")
	return version != "" && (number(first) < major || number(first) == major && number(second) < minor)
}
