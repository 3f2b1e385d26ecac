package foreign

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
)

// serverKey is the key whose random value names a database of Redis. It is set once.
const serverKey = "nixie:server"

// database returns where the jobs are, without the name of the server.
func (c *Config) database(client redis.UniversalClient) (at broker.Site) {
	at.Prefix = c.Prefix
	if c.Format == "celery" { // it takes both for the same
		at.Prefix = strings.TrimSuffix(c.Prefix, "_")
	}
	if one, ok := client.(interface{ Options() *redis.Options }); ok {
		at.Database = strconv.Itoa(one.Options().DB)
	}
	return at
}

// site returns where the jobs are, and sets the name of the server if the office adopts them. It
// stays unknown where we may not do that.
func (c *Config) site(ctx context.Context, client redis.UniversalClient) (at broker.Site, err error) {
	at = c.database(client)
	if c.Adopts {
		err = client.SetNX(ctx, serverKey, rand.Text(), 0).Err()
	}
	var refused redis.Error
	name := client.Get(ctx, serverKey)
	if err = errors.Join(err, name.Err()); err != nil && !errors.As(err, &refused) {
		return at, readError(serverKey, err)
	}
	at.Server = named(name)
	return at, nil
}

// named returns the name of a server; what cannot be one is unknown.
func named(answer *redis.StringCmd) string {
	if nixie.CheckName("server", answer.Val()) != nil {
		return ""
	}
	return answer.Val()
}
