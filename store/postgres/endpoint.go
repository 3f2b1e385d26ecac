package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/nixie-go/nixie"
)

// endpoint names a store: a schema of a database of a server.
type endpoint struct {
	opts    Options
	address string // for people, without secrets
	config  *pgxpool.Config
	shown   *pgx.ConnConfig   // says where that is: the hooks of a pool may have the last word
	texts   map[string]string // statements of the folder sql
}

// The parameters of a URL that are ours.
const (
	schemaParameter = "nixie_schema"
	listenParameter = "nixie_listen"
)

var schemaName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)
})

// locate reads a URL or DSN. Its errors show nothing that could be a secret.
func locate(dsn string, opts Options) (endpoint, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil && !cutPassword(dsn) {
		if wrong := wrongPart(dsn, err); wrong != "" {
			return endpoint{}, nixie.Errorf(nixie.CodeInvalid, "%s", wrong)
		}
	}
	if err != nil || cutPassword(dsn) {
		return endpoint{}, nixie.Errorf(nixie.CodeInvalid,
			"store is no PostgreSQL URL: give one like postgres://user@host:5432/database, and characters like / : @ ? # %% in a password as %%2F and so on")
	}
	c := config.ConnConfig
	named, listen := c.RuntimeParams[schemaParameter], cmp.Or(c.RuntimeParams[listenParameter], "on")
	delete(c.RuntimeParams, schemaParameter)
	delete(c.RuntimeParams, listenParameter)
	if listen != "on" && listen != "off" {
		return endpoint{}, nixie.Errorf(nixie.CodeInvalid, "%s is %q: give on or off", listenParameter, listen)
	}
	opts.NoListen = opts.NoListen || listen == "off"
	for parameter := range c.RuntimeParams {
		if strings.HasPrefix(parameter, "nixie_") {
			return endpoint{}, nixie.Errorf(nixie.CodeInvalid, "the store's URL has the parameter %s: known are %s and %s", parameter,
				schemaParameter, listenParameter)
		}
	}
	opts.Schema = cmp.Or(opts.Schema, named)
	return newEndpoint(config, opts)
}

// newEndpoint fills in the defaults of options.
func newEndpoint(config *pgxpool.Config, opts Options) (endpoint, error) {
	opts.Schema = cmp.Or(opts.Schema, defaultSchema)
	opts.LockWait = cmp.Or(opts.LockWait, defaultLockWait)
	opts.AnswerWait = cmp.Or(opts.AnswerWait, defaultAnswerWait)
	if opts.Owner == "" {
		opts.Owner = processName()
	}
	if !schemaName().MatchString(opts.Schema) {
		return endpoint{}, nixie.Errorf(nixie.CodeInvalid, "schema %q: use small letters, digits and _, at most 63", opts.Schema)
	}
	s := endpoint{opts: opts, config: config, texts: textsOf(opts.Schema)}
	s.show(config.ConnConfig)
	return s, nil
}

// show notes where connections lead.
func (s *endpoint) show(config *pgx.ConnConfig) {
	s.shown = config
	s.address = s.url("")
}

// wrongPart says which part of a URL cannot be used, if it is a port, or the one parameter without
// which it could be read. It shows no secrets.
func wrongPart(dsn string, err error) string {
	u, bad := url.Parse(dsn)
	if bad != nil {
		return ""
	}
	if n, bad := strconv.Atoi(u.Port()); bad == nil && (n < 1 || n > 65535) {
		return "port of the store's URL is not from 1 to 65535"
	}
	why := "no such value is taken"
	if errors.As(err, new(*fs.PathError)) {
		why = "that file cannot be read: check its path"
	}
	for name, values := range u.Query() {
		other := u.Query()
		other.Del(name)
		without := *u
		without.RawQuery = other.Encode()
		if _, err := pgxpool.ParseConfig(without.String()); err == nil && !strings.Contains(name, "pass") {
			return fmt.Sprintf("parameter %s of the store's URL is %q: %s", name, strings.Join(values, " "), why)
		}
	}
	return ""
}

// cutPassword reports whether a part of the password in a URL may be taken for something else, and
// would be shown: / ? or # end what is before the host.
func cutPassword(dsn string) bool {
	_, rest, isURL := strings.Cut(dsn, "://")
	end := strings.IndexAny(rest, "/?#")
	return isURL && end >= 0 && strings.Contains(rest[end:], "@")
}

// url returns the URL of the store without secrets: for a role that is named, or for none.
func (s *endpoint) url(role string) string {
	c := s.shown
	u := url.URL{Scheme: "postgres", Path: "/" + c.Database}
	query := url.Values{}
	switch {
	case strings.HasPrefix(c.Host, "/"):
		query.Set("host", c.Host)
	case c.Port != 5432:
		u.Host = net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port)))
	case strings.Contains(c.Host, ":"):
		u.Host = "[" + c.Host + "]"
	default:
		u.Host = c.Host
	}
	if role != "" {
		u.User = url.User(role)
	}
	if s.opts.Schema != defaultSchema {
		query.Set(schemaParameter, s.opts.Schema)
	}
	u.RawQuery = strings.ReplaceAll(query.Encode(), "%2F", "/")
	return u.String()
}

// user returns the role of this process.
func (s *endpoint) user() string { return s.shown.User }

// command returns what a role has to type to do something about the schema.
func (s *endpoint) command(role, words string) string {
	return fmt.Sprintf("nixie migrate %s --store '%s'", words, s.url(role))
}

// named returns the text of a statement, which is the name of a file in the folder sql or the
// statement itself, with the schema where it has @.
func (s *endpoint) named(query string) string {
	if text, ok := s.texts[query]; ok {
		return text
	}
	return strings.ReplaceAll(query, "@.", s.opts.Schema+".")
}

// settings returns the settings of a connection that do not come from the URL.
func (s *endpoint) settings() map[string]string {
	return map[string]string{
		"jit":                                 "off",                // a misjudged plan would be compiled at each claim
		"plan_cache_mode":                     "force_generic_plan", // calls find few rows by keys, also if tables grew since the plan
		"enable_seqscan":                      "off",                // likewise
		"work_mem":                            "32MB",               // so that no claim goes by way of the disk
		"lock_timeout":                        millis(s.opts.LockWait),
		"statement_timeout":                   millis(statementLimit),
		"idle_in_transaction_session_timeout": millis(idleLimit),
		"tcp_keepalives_idle":                 "15", // seconds; what a machine that vanished has locked is free after half a minute
		"tcp_keepalives_interval":             "5",
		"tcp_keepalives_count":                "3",
	}
}

// configure makes the configuration of the pool.
func (s *endpoint) configure() *pgxpool.Config {
	config := s.config.Copy()
	params := s.settings()
	params["application_name"] = "nixie"
	maps.Copy(params, config.ConnConfig.RuntimeParams) // the URL has the last word
	config.ConnConfig.RuntimeParams = params
	config.AfterConnect = func(_ context.Context, c *pgx.Conn) error {
		registerArrays(c.TypeMap())
		return nil
	}
	config.ShouldPing = pings
	return config
}

// pings lets the watch ask without asking first whether its connection is alive.
func pings(_ context.Context, p pgxpool.ShouldPingParams) bool { return p.IdleDuration > 2*lookEvery }

// connection opens a connection outside of the pool, as the pool opens those inside.
func (s *endpoint) connection(ctx context.Context, name string) (*pgx.Conn, error) {
	config := s.config.ConnConfig.Copy()
	if before := s.config.BeforeConnect; before != nil {
		if err := before(ctx, config); err != nil {
			return nil, err
		}
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeExec // no statement runs twice
	config.OnNotification = nil                         // notifications are waited for
	config.RuntimeParams["application_name"] = name
	c, err := pgx.ConnectConfig(ctx, config)
	if after := s.config.AfterConnect; err == nil && after != nil {
		if err = after(ctx, c); err != nil {
			_ = c.Close(ctx)
		}
	}
	return c, err
}

func processName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s:%d", host, os.Getpid())
}
