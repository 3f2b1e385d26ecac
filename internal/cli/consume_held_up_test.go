//go:build linux

package cli_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/nixie-go/nixie/internal/proof/testservers"
)

// A record whose letter is too large for its topic ends the consumer, which says where it lies and
// what to set, and has committed what was before it. With an office the consumer goes on.
func TestConsumeEndsWhereNoLetterFits(t *testing.T) {
	t.Parallel()
	seed := testservers.FakeKafka(t, "in")
	by, err := kgo.NewClient(kgo.SeedBrokers(seed), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer by.Close()
	admin, small := kadm.NewClient(by), "6000"
	if made, err := admin.CreateTopics(t.Context(), 1, 1, map[string]*string{"max.message.bytes": &small}, "in.dlq"); err != nil ||
		made.Error() != nil {
		t.Fatal(err, made.Error())
	}
	noise := make([]byte, 20_000)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise) // it never fails
	for i := range 10 {
		r := &kgo.Record{Topic: "in", Partition: 1, Key: fmt.Append(nil, "key ", i), Value: []byte("v")}
		if i == 6 {
			r.Value = noise
		}
		if err := by.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	url, d, began := "kafka://"+seed+"/in", newWorkspace(t), time.Now()
	handle := []string{"--no-output", "--", "sh", "-c", `[ "$NIXIE_KEY" = "key 6" ] && exit 65; exit 0`}
	r := d.nixie(1, append([]string{"consume", url, "-g", "g"}, handle...)...)
	for _, want := range []string{"the record of in at offset 6 in partition 1 died",
		"topic in.dlq takes no record so large: raise its max.message.bytes"} {
		if !strings.Contains(r.err, want) {
			t.Errorf("it does not say %q:\n%s", want, r.err)
		}
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %s", took)
	}
	offsets, err := admin.FetchOffsets(t.Context(), "g")
	if at, _ := offsets.Lookup("in", 1); err != nil || at.At != 6 {
		t.Errorf("committed is %+v, %v", at, err)
	}
	got, errs := d.consume(5, url, "300ms", append([]string{"--office"}, handle...)...)
	if got.Succeeded != 3 || !strings.Contains(d.nixie(0, "dlq", "show", "key 6").out, "key 6") {
		t.Errorf("%+v\n%s", got, errs)
	}
	d.nixie(5, "dlq", "redrive", "--from", url+".dlq", "--all", "--yes") // the office may have redriven it, or not
}
