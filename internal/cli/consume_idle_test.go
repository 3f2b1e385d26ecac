//go:build linux

package cli_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/broker/redis"
	"github.com/nixie-go/nixie/internal/proof/testservers"
)

// idleRecords counts the records that these tests put on the topic "in".
const idleRecords = 9

// consumed has the part of the output of nixie consume -o json that tests need.
type consumed struct {
	Succeeded, Left int
}

// group puts records on a topic and returns its URL.
func group(t *testing.T, seed string) string {
	t.Helper()
	by, err := kgo.NewClient(kgo.SeedBrokers(seed))
	if err != nil {
		t.Fatal(err)
	}
	defer by.Close()
	for i := range idleRecords {
		if err := by.ProduceSync(t.Context(), &kgo.Record{Topic: "in", Value: fmt.Append(nil, i)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	return "kafka://" + seed + "/in"
}

// consume runs nixie consume --idle, which has to end with the code.
func (d *workspace) consume(code int, url, idle string, args ...string) (c consumed, errs string) {
	d.t.Helper()
	r := d.nixie(code, append([]string{"consume", url, "-g", "g", "--idle", idle, "-o", "json"}, args...)...)
	if err := json.Unmarshal([]byte(r.out), &c); err != nil {
		d.t.Fatalf("%v\n%s%s", err, r.out, r.err)
	}
	return c, r.err
}

// A member that vanished has the partitions until its session ends, by default ten
// seconds: its records are waited for, however short the idle time is.
func TestIdleWaitsForAMemberThatVanished(t *testing.T) {
	t.Parallel()
	url, d := group(t, testservers.FakeKafka(t, "in", "in.dlq")), newWorkspace(t)
	dead := d.running(1, "consume", url, "-g", "g", "--", "sh", "-c", "echo >> ledger; sleep 1000")
	if err := dead.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = dead.Wait()
	began := time.Now()
	if got, errs := d.consume(0, url, "300ms", "--", "true"); got.Succeeded != idleRecords || got.Left != 0 {
		t.Errorf("%+v\n%s", got, errs)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %s: that is no session of ten seconds", took)
	}
}

// Records that a live member holds and does not finish are left to it, and counted.
func TestIdleNamesWhatOthersHave(t *testing.T) {
	t.Parallel()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "in", "in.dlq"), kfake.GroupMinSessionTimeout(time.Second),
		kfake.BrokerConfigs(map[string]string{"group.initial.rebalance.delay.ms": "0"}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	url, d := group(t, cluster.ListenAddrs()[0]), newWorkspace(t)
	other := d.running(1, "consume", url, "-g", "g", "--", "sh", "-c", "echo >> ledger; sleep 1000")
	defer func() {
		_ = other.Process.Kill()
		_ = other.Wait()
	}()
	got, errs := d.consume(4, url+"?session=1s", "300ms", "--", "true")
	if got.Left != idleRecords || !strings.Contains(errs, "left to other members of group g: 9 records") {
		t.Errorf("%+v\n%s", got, errs)
	}
}

// A retry that waits in hand, or on a stage, is left: idle does not end before it.
func TestIdleWaitsForRetries(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"in hand": {"--backoff", "2s"}, "on a stage": {"--create", "--retry", "2s"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, d := group(t, testservers.FakeKafka(t, "in", "in.dlq")), newWorkspace(t)
			args = append(args, "--", "sh", "-c", `[ "$NIXIE_ATTEMPT" = 2 ]`)
			if got, errs := d.consume(0, url, "300ms", args...); got.Succeeded != idleRecords {
				t.Errorf("%+v\n%s", got, errs)
			}
		})
	}
}

// That the group was not told of the end is no failure of what was done.
func TestALeaveThatFailsIsAWarning(t *testing.T) {
	t.Parallel()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "in", "in.dlq"),
		kfake.BrokerConfigs(map[string]string{"group.initial.rebalance.delay.ms": "0"}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	cluster.ControlKey(int16(kmsg.LeaveGroup), func(r kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		answer := r.ResponseKind().(*kmsg.LeaveGroupResponse)
		answer.ErrorCode = kerr.GroupAuthorizationFailed.Code
		return answer, nil, true
	})
	url, d := group(t, cluster.ListenAddrs()[0]), newWorkspace(t)
	if got, errs := d.consume(0, url, "300ms", "--", "true"); got.Succeeded != idleRecords ||
		!strings.Contains(errs, "was not told that this member leaves") {
		t.Errorf("%+v\n%s", got, errs)
	}
}

// A consumer that was killed has its records until their leases end: they are waited for, however
// short the idle time is. What a live one holds and does not finish is left to it.
func TestIdleWaitsForLeases(t *testing.T) {
	t.Parallel()
	server := testservers.OwnRedis(t)
	to, err := redis.Connect(redis.Address{Servers: []string{server.Addr}})
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	for name, c := range map[string]struct {
		kill             bool
		code, done, left int
	}{"killed": {true, 0, 1, 0}, "alive": {false, 4, 0, 1}} {
		t.Run(name, func(t *testing.T) {
			if err := to.Create(t.Context(), name, nil); err != nil {
				t.Fatal(err)
			}
			if err := to.Publish(t.Context(), []broker.Publication{{Channel: name, Value: []byte("one")}})()[0]; err != nil {
				t.Fatal(err)
			}
			d, url := newWorkspace(t), "redis://"+server.Addr+"/"+name
			other := d.running(1, "consume", url, "--create", "--lease", "2s", "--", "sh", "-c", "echo >> ledger; sleep 1000")
			defer func() {
				_ = other.Process.Kill()
				_ = other.Wait()
			}()
			if c.kill {
				_ = other.Process.Kill()
			}
			r := d.nixie(c.code, "consume", url, "--idle", "100ms", "-o", "json", "--", "true")
			var got consumed
			if err := json.Unmarshal([]byte(r.out), &got); err != nil || got.Succeeded != c.done || got.Left != c.left {
				t.Errorf("%+v, %v\n%s", got, err, r.err)
			}
			if !c.kill && !strings.Contains(r.err, "left to other consumers of mailbox alive: 1 record") {
				t.Error(r.err)
			}
		})
	}
}
