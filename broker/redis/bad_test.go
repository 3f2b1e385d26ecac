//go:build unix

package redis

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/internal/proof/testservers"
)

// opened tells what Open says of a server.
func opened(t *testing.T, url string) error {
	t.Helper()
	at, err := ParseURL(url)
	if err != nil {
		return err
	}
	d, err := Open(t.Context(), Config{Address: at})
	if err == nil {
		d.Close(t.Context()) //nolint:errcheck // it was only opened
	}
	return err
}

// Each bad address and each unfit server has one line that says what is wrong and what to do.
func TestBadServers(t *testing.T) {
	t.Parallel()
	start := func(options ...string) string { return testservers.OwnRedis(t, options...).Addr }
	secret := filepath.Join(t.TempDir(), "keys.pem")
	ca := filepath.Join(filepath.Dir(secret), "ca.pem")
	testservers.Certify(t, ca, secret)
	secured := testservers.FreeAddress(t) // last, so that nothing else takes it meanwhile
	_, securedPort, _ := net.SplitHostPort(secured)
	protected := start("--requirepass", "sesame", "--tls-port", securedPort, "--tls-cert-file", ca, "--tls-key-file", secret,
		"--tls-auth-clients", "no")
	plain := start("--replicaof", "127.0.0.1 1", "--replica-serve-stale-data", "yes")
	for _, c := range []struct {
		name, url string
		code      nixie.Code
		says      string
	}{
		{"no such server", "redis://127.0.0.1:1/orders", nixie.CodeUnavailable, "check host and port, and that it runs"},
		{"no password", "redis://" + protected + "/orders", nixie.CodeDenied, "the server wants a password"},
		{"wrong password", "redis://:open@" + protected + "/orders", nixie.CodeDenied, "check user and password"},
		{"TLS to a plain port", "rediss://:sesame@" + protected + "/orders", nixie.CodeUnavailable, "write redis://"},
		{"plain to a TLS port", "redis://:sesame@" + secured + "/orders", nixie.CodeUnavailable, "write rediss://"},
		{"unknown authority", "rediss://:sesame@" + secured + "/orders", nixie.CodeDenied, "certificate of its authority as ca=FILE"},
		{"known authority", "rediss://:sesame@" + secured + "/orders?ca=" + ca, "", ""},
		{"replica", "redis://" + plain + "/orders", nixie.CodeUnavailable, "give the address of the primary"},
		{"evicts", "redis://" + start("--maxmemory-policy", "allkeys-lru") + "/orders", nixie.CodeInvalid, "maxmemory-policy is allkeys-lru"},
		{"evicts, volatile", "redis://" + start("--maxmemory-policy", "volatile-lru") + "/orders", nixie.CodeInvalid,
			"maxmemory-policy is volatile-lru"},
		{"no file", "redis://" + start("--appendonly", "no") + "/orders", nixie.CodeInvalid, "appendonly is no"},
		{"file when it suits", "redis://" + start("--appendfsync", "no") + "/orders", nixie.CodeInvalid, "appendfsync is no"},
		{"no file, relaxed", "redis://" + start("--appendonly", "no") + "/orders?relaxed=true", "", ""},
		{"no such database", "redis://" + server.Addr + "/orders?db=99", nixie.CodeInvalid, "no such database"},
		{"braces", "redis://" + server.Addr + "/a%7Bb%7D", nixie.CodeInvalid, "without braces"},
		{"no mailbox", "redis://" + server.Addr, nixie.CodeInvalid, "mailbox is \"\""},
		{"two names", "redis://h/a/b", nixie.CodeInvalid, "give one name after the host"},
		{"no host", "redis:///a", nixie.CodeInvalid, "host of redis is empty"},
		{"another scheme", "http://h/a", nixie.CodeInvalid, "given as redis://host:6379/mailbox"},
		{"bad escape", "redis://u:p%zz@h/a", nixie.CodeInvalid, "write %XX for special characters"},
		{"unknown parameter", "redis://h/a?grace=1s", nixie.CodeInvalid, `parameter "grace" of redis is unknown`},
		{"bad db", "redis://h/a?db=x", nixie.CodeInvalid, `db of redis is "x"`},
		{"bad flag", "redis://h/a?relaxed=yes", nixie.CodeInvalid, `relaxed of redis is "yes"`},
		{"db of a cluster", "redis://h/a?cluster=true&db=2", nixie.CodeInvalid, "a cluster has database 0 only"},
		{"not a cluster", "redis://" + server.Addr + "/a?cluster=true", nixie.CodeInvalid, "leave cluster=true out of the URL"},
		{"key without certificate", "rediss://h/a?key=x", nixie.CodeInvalid, "belong together"},
		{"no such file", "rediss://h/a?ca=missing.pem", nixie.CodeInvalid, "ca of redis: open missing.pem"},
	} {
		err := opened(t, c.url)
		t.Logf("%-22s %v", c.name, err)
		if nixie.CodeOf(err) != c.code || c.says != "" && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: code %q, want %q and %q", c.name, nixie.CodeOf(err), c.code, c.says)
		}
		if text := fmt.Sprint(err); strings.Contains(text, "open@") || strings.Contains(text, "sesame") || strings.Contains(text, "\n") {
			t.Errorf("%s shows a password, or has several lines", c.name)
		}
	}
}

// A server whose memory is full refuses what would be new, and hands out, takes back and forgets.
func TestFullServer(t *testing.T) {
	t.Parallel()
	f := newFixture(t, Address{Servers: []string{testservers.OwnRedis(t).Addr}})
	d := f.open(t, Config{})
	f.produce(t, 3, func(int) string { return fine })
	if err := f.client.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	err := f.sent.Publish(t.Context(), []broker.Publication{{Channel: f.at.Mailbox}})()[0]
	t.Log(err)
	if nixie.CodeOf(err) != nixie.CodeLimit || !strings.Contains(err.Error(), "nothing was added") {
		t.Error(err)
	}
	got := take(t, d, 3)
	if errs := d.Extend(t.Context(), pointers(got), time.Hour); errs[0] != nil {
		t.Error(errs)
	}
	if errs := d.Nack(t.Context(), []broker.Return{{Record: &got[0], As: broker.Failed}}); errs[0] != nil {
		t.Error(errs)
	}
	for _, err := range d.Ack(t.Context(), pointers(got[1:])) {
		if err != nil {
			t.Error(err)
		}
	}
	if again := take(t, d, 1)[0]; again.PriorDeliveries != 1 || again.MessageID != got[0].MessageID {
		t.Errorf("%+v", again)
	}
}
