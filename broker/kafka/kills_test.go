package kafka

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/internal/tier"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/worker"
)

// childVar makes the tests a consumer that is to be killed: broker, topic and the
// file to note in what was handled, by spaces.
const childVar = "NIXIE_TEST_KAFKA_CHILD"

// killStages are those of the consumers that are killed.
func killStages() []broker.Stage {
	return []broker.Stage{{Channel: "{source}.retry.50ms", Delay: 50 * time.Millisecond}}
}

// consumeAsChild works until it is killed.
func consumeAsChild(place string) {
	var seed, topic, path string
	if _, err := fmt.Sscan(place, &seed, &topic, &path); err != nil {
		panic(err)
	}
	ledger, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	d, err := Open(Config{
		Seeds: []string{seed}, Group: topic, Topics: []string{topic}, Stages: killStages(), CommitEvery: 5 * time.Millisecond,
		Client: []kgo.Opt{kgo.SessionTimeout(time.Second), kgo.HeartbeatInterval(100 * time.Millisecond)},
	})
	if err != nil {
		panic(err)
	}
	s, err := broker.New(broker.Config{Driver: d, Letters: broker.DefaultLetters})
	if err != nil {
		panic(err)
	}
	p, err := policy.New(policy.Config{MaxAttempts: 9, Backoff: policy.Backoff{Formula: policy.Fixed, Base: 10 * time.Millisecond}})
	if err != nil {
		panic(err)
	}
	w, err := worker.New(worker.Config{Source: s, Policy: p, Concurrency: 4, Handler: nixie.HandlerFunc(func(_ context.Context, d *nixie.Delivery) error {
		switch o := d.Origin; {
		case o.Offset%20 == 3:
			return errBad
		case o.Offset%10 == 7 && d.Attempts == 1:
			return errLater
		default:
			_, err := fmt.Fprintf(ledger, "%d/%d\n", o.Partition, o.Offset)
			return err
		}
	})})
	if err != nil {
		panic(err)
	}
	panic(w.Run(context.Background()))
}

var errLater = nixie.Transient(fmt.Errorf("later"))

// Consumers are killed at any moment: every record is handled, or a letter, and
// nothing is committed before that.
func TestKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	proof := tier.Proof{Name: "kafka-kills", Unit: "kills", Quick: 3, Deep: 500}
	proof.Run(t, kills)
}

func kills(t *testing.T, seed uint64) int {
	const records, most = 3_000, 3
	b := fake(t)
	b.stages = killStages()
	b.create(t, 2, nil, b.stages[0].Of(b.source))
	dice := rand.New(rand.NewPCG(seed, 7))
	for i := range records {
		b.client.Produce(t.Context(), &kgo.Record{Topic: b.source, Key: fmt.Append(nil, dice.IntN(100)), Value: fmt.Append(nil, i)}, nil)
	}
	if err := b.client.Flush(limited(t)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "ledger")
	killed := 0
	for n := range most {
		child := b.child(t, path)
		ctx := limited(t)
		for goal := records * (n + 1) / (most + 2); len(handled(t, path)) < goal && ctx.Err() == nil; {
			pass(ctx, time.Duration(dice.IntN(5_000))*time.Microsecond)
		}
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = child.Wait() // it was killed
		killed++
		b.ledgerOf(t, path).check(t)
	}
	last := b.child(t, path)
	ctx := limited(t)
	at := int64(0)
	for at < records && ctx.Err() == nil {
		pass(ctx, 20*time.Millisecond)
		at = 0
		for part := range int32(3) {
			offset, _ := b.stand(t, part)
			at += max(offset, 0)
		}
	}
	for len(b.missing(t, path)) > 0 && ctx.Err() == nil { // what is on the stage
		pass(ctx, 20*time.Millisecond)
	}
	if missing := b.missing(t, path); at != records || len(missing) > 0 {
		t.Errorf("%d of %d are committed; neither handled nor dead: %v", at, records, missing)
	}
	if err := last.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = last.Wait() // it was killed
	return killed
}

func (b *bed) child(t *testing.T, path string) *exec.Cmd {
	t.Helper()
	child := exec.Command(os.Args[0]) // without a context: it is killed
	child.Env = append(os.Environ(), childVar+"="+b.seeds[0]+" "+b.source+" "+path)
	child.Stderr = os.Stderr
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	return child
}

// handled is how often each record was handled, by partition and offset.
func handled(t *testing.T, path string) map[string]int {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	all := map[string]int{}
	for lines := bufio.NewScanner(strings.NewReader(string(text))); lines.Scan(); {
		all[lines.Text()]++
	}
	return all
}

// ledgerOf is a ledger of what was handled, and of what is dead.
func (b *bed) ledgerOf(t *testing.T, path string) *ledger {
	t.Helper()
	l := newLedger(b)
	all := handled(t, path)
	for _, r := range b.Records(t, b.letters) {
		all[header(&r, broker.HeaderPartition)+"/"+header(&r, broker.HeaderOffset)]++
	}
	for text := range all {
		var part int32
		var offset int64
		if _, err := fmt.Sscanf(text, "%d/%d", &part, &offset); err != nil {
			continue // a line that was being written
		}
		l.note(&nixie.Delivery{Message: nixie.Message{Origin: &nixie.Origin{Channel: b.source, Partition: part, Offset: offset}}})
	}
	return l
}

// missing lists records that were neither handled nor are dead.
func (b *bed) missing(t *testing.T, path string) (list []string) {
	t.Helper()
	l := b.ledgerOf(t, path)
	for _, r := range b.Records(t, b.source) {
		if l.done[place{b.source, r.Partition}][r.Offset] == 0 {
			list = append(list, fmt.Sprint(r.Partition, "/", r.Offset))
		}
	}
	return list
}
