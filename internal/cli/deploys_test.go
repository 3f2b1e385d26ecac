//go:build linux

package cli_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/broker/redis"
	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/internal/proof/testservers"
)

// untilKill lies between SIGTERM and SIGKILL of the platform of these tests. It is shorter than the
// grace of nixie.
const untilKill = 800 * time.Millisecond

// platform deploys nixie again and again, over one kind of store or broker.
type platform struct {
	*workspace
	line []string // of nixie
}

// deployed is a command that stays until there is a file go. The item killer kills its runner,
// unless there is a file harmless.
const deployed = `#!/bin/sh
echo "$1" >> ledger
case $1 in killer) [ -e harmless ] || { echo >> kills; kill -KILL $PPID; sleep 9; } ;; esac
until [ -e go ]; do sleep 0.05; done
`

// platformKind makes what nixie works on, with the given items.
type platformKind struct {
	name string
	make func(t *testing.T, hands string, items ...string) *platform
}

var platforms = []platformKind{
	{"SQLite", func(t *testing.T, hands string, items ...string) *platform {
		return onStore(newWorkspace(t), hands, items)
	}},
	{"PostgreSQL", func(t *testing.T, hands string, items ...string) *platform {
		d := newWorkspace(t)
		d.env = append(d.env, "NIXIE_STORE="+testservers.OwnPostgres(t).URL)
		return onStore(d, hands, items)
	}},
	{"Kafka", func(t *testing.T, hands string, items ...string) *platform {
		seed := testservers.FakeKafka(t, "in", "in.dlq")
		by, err := kgo.NewClient(kgo.SeedBrokers(seed))
		check(t, err)
		defer by.Close()
		for _, item := range items {
			check(t, by.ProduceSync(t.Context(), &kgo.Record{Topic: "in", Key: []byte("k"), Value: []byte(item)}).FirstErr())
		}
		return onBroker(newWorkspace(t), hands, "kafka://"+seed+"/in?session=1s", "-g", "g", "--order", "none")
	}},
	{"Redis", func(t *testing.T, hands string, items ...string) *platform {
		url := "redis://" + testservers.OwnRedis(t).Addr
		at, err := redis.ParseURL(url)
		check(t, err)
		to, err := redis.Connect(at)
		check(t, err)
		defer to.Close()
		for _, name := range []string{"in", "in.dlq"} {
			check(t, to.Create(t.Context(), name, nil))
		}
		for _, item := range items {
			check(t, to.Publish(t.Context(), []broker.Publication{{Channel: "in", Value: []byte(item)}})()[0])
		}
		return onBroker(newWorkspace(t), hands, url+"/in")
	}},
}

func onStore(d *workspace, hands string, items []string) *platform {
	d.write("items.txt", strings.Join(items, "\n")+"\n")
	d.write("work", deployed)
	return &platform{d, []string{"run", "items.txt", "--job", "j", "-p", hands, "--lease", "3s", "--", "./work", "{line}"}}
}

func onBroker(d *workspace, hands string, flags ...string) *platform {
	d.write("work", deployed)
	return &platform{d, slices.Concat([]string{"consume", "-p", hands, "--lease", "1s", "--idle", "200ms"}, flags,
		[]string{"--", "sh", "-c", `exec ./work "$(cat)"`})}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// deploy lets nixie begin, tells it to stop, and kills it when the platform waits no longer.
func (p *platform) deploy() {
	p.t.Helper()
	cmd := p.running(strings.Count(p.read("ledger"), "\n")+1, p.line...) // a command runs
	p.signal(cmd, syscall.SIGTERM)
	if !within(10*time.Second, func() bool { return strings.Contains(p.read("err"), "may finish within 25s") }) {
		p.t.Fatalf("the stop is not noticed: %s", p.read("err"))
	}
	<-time.After(untilKill)
	p.signal(cmd, syscall.SIGKILL)
	if code := ended(p.t, cmd); code != -1 {
		p.t.Fatalf("exit %d before the kill: %s%s", code, p.read("out"), p.read("err"))
	}
	p.noProcess()
}

// end lets all commands succeed, and returns how nixie ends.
func (p *platform) end() done {
	p.t.Helper()
	p.write("go", "")
	return p.finish(p.command("nixie", p.line...))
}

// Deploys that kill after SIGTERM make no letter of innocent long work, however many there are. A
// killer among that is found after as many kills as without deploys.
func TestDeploys(t *testing.T) {
	t.Parallel()
	proof.Run(t, "deploys", func(t *testing.T, _ uint64) int {
		deploys := proof.Count("deploys")
		t.Run("each", func(t *testing.T) {
			for _, on := range platforms {
				on.deployed(t, deploys, proof.Current() >= proof.Long)
			}
		})
		return deploys
	})
}

// deployed runs the rows of TestDeploys on one kind of platform; full adds those of make proof.
func (on platformKind) deployed(t *testing.T, deploys int, full bool) {
	for _, hands := range []int{1, 2} {
		t.Run(fmt.Sprintf("%s/%d", on.name, hands), func(t *testing.T) {
			if hands > 1 && !full {
				t.Skip("runs in make proof")
			}
			t.Parallel()
			p := on.make(t, fmt.Sprint(hands), []string{"a", "b"}[:hands]...)
			for range deploys {
				p.deploy()
			}
			r := p.end()
			if r.code != 0 || !strings.Contains(r.err, fmt.Sprintf("%d succeeded", hands)) {
				t.Fatalf("exit %d\n%s%s", r.code, r.out, r.err)
			}
			t.Logf("%-10s %d hands, %2d deploys: 0 letters", on.name, hands, deploys)
		})
	}
	t.Run(on.name+"/killer", func(t *testing.T) {
		if on.name != "SQLite" && !full {
			t.Skip("runs in make proof")
		}
		t.Parallel()
		alone := killsUntilFound(on.make(t, "2", "a", "killer"), 0, 0)
		each := (deploys + alone - 1) / alone
		between := killsUntilFound(on.make(t, "2", "a", "killer"), alone, each)
		t.Logf("%-10s a killer is found after %d kills, and after %d with %d deploys before each", on.name, alone, between, each)
		if alone != between {
			t.Errorf("the killer is found after %d kills with deploys between them, without after %d", between, alone)
		}
	})
}

// killsUntilFound returns how many runners the killer kills until it is a letter. Before each of
// first kills there are some deploys, in which it is harmless.
func killsUntilFound(p *platform, first, deploys int) int {
	p.t.Helper()
	const most = 12
	for n := range most {
		p.write("harmless", "")
		for range deploys {
			if n < first {
				p.deploy()
			}
		}
		check(p.t, os.Remove(p.path("harmless")))
		r := p.end()
		if r.code != -1 {
			if r.code != 5 || !strings.Contains(r.err, "1 dead") {
				p.t.Fatalf("exit %d\n%s%s", r.code, r.out, r.err)
			}
			if !strings.Contains(p.read("kills"), "\n") {
				p.t.Fatal("a letter without a kill")
			}
			return strings.Count(p.read("kills"), "\n")
		}
		check(p.t, os.Remove(p.path("go")))
	}
	p.t.Fatalf("the killer is not found after %d kills", most)
	return 0
}
