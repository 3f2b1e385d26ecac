package testservers

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Pooler starts a PgBouncer before the server, which hands out a session for each
// transaction, and returns its URL. The test is skipped, or fails, where there is
// none.
func (p *Postgres) Pooler(t testing.TB) string {
	t.Helper()
	p.Need(t)
	file := Program(t, "PgBouncer")
	if p.folder == "" {
		t.Skip("the server is given, and has no socket in a folder that is ours")
	}
	const script = `cd "$1" && mkdir pooler && cd pooler || exit 1
printf '"nixie" ""\n' >users
cat >pooler.ini <<END
[databases]
* = host=$1
[pgbouncer]
listen_addr =
listen_port = 5432
unix_socket_dir = $1/pooler
auth_type = trust
auth_file = users
pool_mode = transaction
default_pool_size = 3
END
"$PGBOUNCER" -q pooler.ini >pooler.log 2>&1 &
for try in $(seq 500); do [ -S .s.PGSQL.5432 ] && break; sleep 0.01; done
[ -S .s.PGSQL.5432 ] || { cat pooler.log; exit 1; }
echo ready
cat >/dev/null
kill $!; wait`
	cmd := p.script(script)
	cmd.Env = append(os.Environ(), "PGBOUNCER="+file)
	leash, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = leash.Close() // it ends by that
		_ = cmd.Wait()    // a killed pooler is no success for a shell
		if err := os.RemoveAll(filepath.Join(p.folder, "pooler")); err != nil {
			t.Error(err)
		}
	})
	ctx, stop := context.WithTimeout(t.Context(), postgresPatience)
	defer stop()
	if err := waitReady(ctx, said); err != nil {
		t.Fatal(fmt.Errorf("PgBouncer: %w", err))
	}
	return strings.Replace(p.URL, url.QueryEscape(p.folder), url.QueryEscape(filepath.Join(p.folder, "pooler")), 1)
}
