package postgres

import (
	"context"
	"maps"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/nixie-go/nixie"
)

// OpenPool opens the store in the database of a pool of the caller: its TLS, its BeforeConnect and
// its other hooks are those of all connections. It makes no schema: nixie migrate up does.
// Transactions of the pool can be given to [Store.Tx].
//
// Calls take connections of the pool and leave nothing in their sessions, because settings go with
// each transaction. What must not wait for handlers has at most two connections of its own. One
// renews leases, tells other processes about work and looks for it. The other listens, once a
// worker has waited for work. [Store.Close] closes those and leaves the pool open: close the store
// first.
func OpenPool(ctx context.Context, pool *pgxpool.Pool, opts Options) (*Store, error) {
	if pool == nil {
		return nil, nixie.Errorf(nixie.CodeInvalid, "pool is missing: give one that is open")
	}
	config := pool.Config()
	if config.ConnConfig.RuntimeParams == nil {
		config.ConnConfig.RuntimeParams = map[string]string{}
	}
	at, err := newEndpoint(config, opts)
	if err != nil {
		return nil, err
	}
	borrow := func(s *Store, ctx context.Context) error { return s.borrow(ctx, pool) }
	return start(ctx, at, migrations, borrow, (*Store).find)
}

// borrow uses a pool of the caller, and makes one of one connection for what must not wait for it.
func (s *Store) borrow(ctx context.Context, pool *pgxpool.Pool) (err error) {
	s.pool, s.sessionSettings = pool, perTransaction(s.settings())
	if err = s.look(ctx); err != nil {
		return err
	}
	config := s.config.Copy()
	config.MaxConns, config.MinConns, config.MinIdleConns, config.ShouldPing = 1, 0, 0, pings
	if params := config.ConnConfig.RuntimeParams; !s.pooled {
		maps.Copy(params, s.settings())
		params["application_name"], params["default_transaction_isolation"] = "nixie", "read committed"
	}
	if s.own, err = pgxpool.NewWithConfig(context.WithoutCancel(ctx), config); err != nil {
		return err
	}
	if err = s.own.Ping(ctx); err == nil {
		return nil
	}
	s.own.Close()
	if codeOf(err) == errTooMany {
		err = nixie.Errorf(nixie.CodeUnavailable, "store %s has no connection left: besides the pool, it needs one, and one to listen: "+
			"lower MaxConns of the pool, or raise the limit of the server or of the role: %w", s.address, err)
	}
	return err
}

// find checks that the schema is the one that this program knows, and that it can be written to.
func (s *Store) find(ctx context.Context) error {
	var readOnly, writes bool
	if err := s.own.QueryRow(ctx, "select current_setting('transaction_read_only') = 'on'").Scan(&readOnly); err != nil {
		return err
	}
	if readOnly {
		return nixie.Errorf(nixie.CodeDenied, "the pool of store %s is read-only: give one of the primary server, and of a role and "+
			"settings without default_transaction_read_only", s.address)
	}
	list, err := s.schema.applied(ctx, s.own)
	if err != nil {
		return err
	}
	owner := s.owners(ctx)
	up := s.command(owner, "up")
	if owner != s.user() {
		up = s.command(owner, "up --grant "+s.user())
	}
	switch countApplied(list) {
	case 0:
		return nixie.Errorf(nixie.CodeNotFound, "store %s has no schema %s: run %s", s.address, s.opts.Schema, up)
	case len(list):
	default:
		return s.refuseOlder(ctx)
	}
	err = s.own.QueryRow(ctx, s.named("select has_table_privilege('@.message', 'insert')")).Scan(&writes)
	if err == nil && !writes {
		err = nixie.Errorf(nixie.CodeDenied, "store %s: role %q may only read it: run %s", s.address, s.user(), up)
	}
	return err
}
