//go:build unix

package kafka

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/internal/proof/testservers"
	"github.com/nixie-go/nixie/policy"
)

// secure is a broker with TLS, passwords and access rights.
type secure struct {
	*fixture // without these
	hostCA   string
	host     string
}

// newSecure starts one. Its users are app and, for SCRAM, scrammed.
func newSecure(t *testing.T) *secure {
	t.Helper()
	s := &secure{host: testservers.FreeAddress(t), hostCA: filepath.Join(t.TempDir(), "ca.pem")}
	keys := filepath.Join(filepath.Dir(s.hostCA), "keys.pem")
	testservers.Certify(t, s.hostCA, keys)
	own := testservers.OwnKafka(t,
		"listeners=PLAINTEXT://CLIENT,CONTROLLER://OTHER,SECURE://"+s.host,
		"advertised.listeners=PLAINTEXT://CLIENT,SECURE://"+s.host,
		"listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SECURE:SASL_SSL",
		"sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
		"listener.name.secure.ssl.keystore.type=PEM", "listener.name.secure.ssl.keystore.location="+keys,
		`listener.name.secure.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_app="p/w:d%";`,
		"listener.name.secure.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;",
		"listener.name.secure.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;",
		"authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer", "super.users=User:ANONYMOUS",
		"allow.everyone.if.no.acl.found=true",
	)
	s.fixture = newFixture(t, []string{own.Seed})
	for _, how := range []kadm.ScramMechanism{kadm.ScramSha256, kadm.ScramSha512} {
		user := kadm.UpsertSCRAM{User: "scrammed", Mechanism: how, Iterations: 4096, Password: "p/w:d%"}
		if answers, err := kadm.NewClient(s.client).AlterUserSCRAMs(limited(t), nil, []kadm.UpsertSCRAM{user}); err != nil ||
			answers.Error() != nil {
			t.Fatal(err, answers.Error())
		}
	}
	return s
}

// at returns the address of the topic for a user, as one would type it.
func (s *secure) at(t *testing.T, user, password, sasl string) Address {
	t.Helper()
	a, err := ParseURL(fmt.Sprintf("kafka://%s@%s/%s?sasl=%s&ca=%s", user, s.host, s.source, sasl, s.hostCA))
	if err != nil {
		t.Fatal(err)
	}
	a.Login("", password)
	return a
}

// A broker with TLS, passwords and access rights.
func TestSecureBroker(t *testing.T) {
	t.Parallel()
	s := newSecure(t)
	t.Run("passwords", s.passwords)
	t.Run("forbidden letters", s.forbidden)
}

// passwords checks that each SASL mechanism can consume, and write and read letters, over TLS.
// Wrong passwords and an unknown certificate are refused, and no error shows a password.
func (s *secure) passwords(t *testing.T) {
	for _, who := range []struct{ user, sasl string }{{"app", "plain"}, {"scrammed", "scram-sha-256"}, {"scrammed", "scram-sha-512"}} {
		t.Run(who.sasl, func(t *testing.T) {
			a := s.at(t, who.user, "p/w:d%", who.sasl)
			client, err := a.Options()
			if err != nil {
				t.Fatal(err)
			}
			before := len(s.Records(t, s.letters))
			s.fill(t, 1)
			h := s.start(t, func(context.Context, *nixie.Delivery) error { return errBad },
				func(c *Config, _ *broker.Config, _ *policy.Config) {
					c.Seeds, c.Client, c.Group = a.Seeds, append(c.Client, client...), s.source+who.sasl
				})
			s.lettersOf(t, before+1)
			h.leave(t)
			from, err := Read(limited(t), a, "")
			if err != nil {
				t.Fatal(err)
			}
			defer from.Close()
			if got, err := from.Next(limited(t), 1); err != nil || len(got) != 1 {
				t.Errorf("%d read, %v", len(got), err)
			}
			for what, wrong := range map[string]Address{"password": s.at(t, who.user, "another", who.sasl), "certificate": a} {
				if what == "certificate" {
					wrong.CA = ""
				}
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				r, err := Read(ctx, wrong, "")
				cancel()
				if err == nil {
					r.Close()
				}
				if nixie.CodeOf(err) != nixie.CodeDenied || strings.Contains(err.Error(), "another") ||
					strings.Contains(err.Error(), "p/w:d%") {
					t.Errorf("wrong %s: %v", what, err)
				}
			}
		})
	}
}

// forbidden checks that the group commits nothing while the client may not write to the topic of
// letters. The letters go there once it may.
func (s *secure) forbidden(t *testing.T) {
	b := newFixture(t, s.seeds)
	s.source, s.letters, s.client = b.source, b.letters, b.client
	s.fill(t, 3)
	a := s.at(t, "app", "p/w:d%", "plain")
	client, err := a.Options()
	if err != nil {
		t.Fatal(err)
	}
	deny := kadm.NewACLs().Topics(s.letters).ResourcePatternType(kadm.ACLPatternLiteral).Deny("User:app").DenyHosts("*").Operations(
		kadm.OpWrite)
	admin := kadm.NewClient(s.client)
	if made, err := admin.CreateACLs(limited(t), deny); err != nil || made[0].Err != nil {
		t.Fatal(err, made)
	}
	var tried atomic.Int64
	h := s.start(t, func(context.Context, *nixie.Delivery) error { tried.Add(1); return errBad },
		func(c *Config, _ *broker.Config, _ *policy.Config) {
			c.Seeds, c.Client = a.Seeds, append(c.Client, client...)
		})
	ctx := limited(t)
	waitUntil(t, func() bool { return tried.Load() >= 1 })
	if errs := h.driver.Publish(ctx, []broker.Publication{{Channel: s.letters, Value: []byte("v")}})(); nixie.CodeOf(
		errs[0]) != nixie.CodeDenied {
		t.Errorf("published: %v", errs[0])
	}
	for part := range int32(3) {
		if offset, _ := s.groupState(t, part); offset > 0 {
			t.Errorf("partition %d: %d is committed, and there is no letter", part, offset)
		}
	}
	if gone, err := admin.DeleteACLs(limited(t), deny); err != nil || gone[0].Err != nil {
		t.Fatal(err, gone)
	}
	for _, r := range s.lettersOf(t, 3) {
		if !bytes.Equal(r.Key, []byte("one")) {
			t.Errorf("%+v", r)
		}
	}
	h.leave(t)
}
