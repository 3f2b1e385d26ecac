package foreign

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/nixie-go/nixie"
)

// serverKey is the key whose random value names a database of Redis. It is set once.
const serverKey = "nixie:server"

// place tells where a job queue keeps its jobs.
type place struct {
	server   string // value of serverKey; empty: unknown
	database string
	prefix   string
}

// placeOf returns the place of a job queue. If we may not write there, or not read the key, the
// server stays unknown.
func placeOf(ctx context.Context, client redis.UniversalClient, c Config) (place, error) {
	at := placed(client, c)
	var refused redis.Error
	if c.Adopts {
		if err := client.SetNX(ctx, serverKey, rand.Text(), 0).Err(); err != nil && !errors.As(err, &refused) {
			return at, readError(serverKey, err)
		}
	}
	name, err := client.Get(ctx, serverKey).Result()
	if err != nil && !errors.As(err, &refused) {
		return at, readError(serverKey, err)
	}
	at.server = named(name)
	return at, nil
}

// placed returns the place without its server. Celery takes a prefix for the same with and without _.
func placed(client redis.UniversalClient, c Config) place {
	at := place{prefix: c.Prefix}
	if c.Format == "celery" {
		at.prefix = strings.TrimSuffix(c.Prefix, "_")
	}
	if one, ok := client.(interface{ Options() *redis.Options }); ok {
		at.database = strconv.Itoa(one.Options().DB)
	}
	return at
}

// named returns the name of a server; what cannot be one is unknown.
func named(value string) string {
	if nixie.CheckName("server", value) != nil {
		return ""
	}
	return value
}

// has reports whether a record can have died at this place. What is unknown fits.
func (at place) has(o *nixie.Origin) bool {
	return (o.Database == "" || at.database == "" || o.Database == at.database && o.Prefix == at.prefix) &&
		(o.Server == "" || at.server == "" || o.Server == at.server)
}

// String writes the place for people.
func (at place) String() string {
	if at.database == "" {
		return "a place that it does not name"
	}
	text := "database " + at.database
	if at.prefix != "" {
		text += ", prefix " + at.prefix + ","
	}
	if at.server == "" {
		return text + " of a server without a name"
	}
	return text + " of server " + at.server
}

// death writes a time of death and a body for people.
func death(at int64, hash []byte) string {
	var parts []string
	if at >= 0 {
		parts = append(parts, "of "+time.UnixMilli(at).UTC().Format("2006-01-02T15:04:05.000Z"))
	}
	if len(hash) > 0 {
		parts = append(parts, fmt.Sprintf("with a body of sha256 %.6x…", hash))
	}
	return strings.Join(parts, " ")
}
