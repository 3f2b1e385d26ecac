package kafka

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
)

// A batch that inflates beyond the limit stays where it is, and is told when all others came. It is
// not done for the group, so that the next reader tells it again.
func TestBombs(t *testing.T) {
	codecs := map[string]kgo.CompressionCodec{"gzip": kgo.GzipCompression(), "zstd": kgo.ZstdCompression(), "lz4": kgo.Lz4Compression()}
	onBoth(t, func(t *testing.T, make func(testing.TB) *fixture) {
		for name, codec := range codecs {
			t.Run(name, func(t *testing.T) {
				b := make(t)
				writer, err := kgo.NewClient(kgo.SeedBrokers(b.seeds...), kgo.ProducerBatchMaxBytes(90<<20),
					kgo.ProducerBatchCompression(codec), kgo.RecordPartitioner(kgo.ManualPartitioner()))
				if err != nil {
					t.Fatal(err)
				}
				defer writer.Close()
				for n, size := range []int{1, 2, maxInflated + 1, 3, 4 << 20, maxInflated + 2, 5} {
					r := &kgo.Record{Topic: b.letters, Key: []byte(fmt.Sprint(n)), Value: bytes.Repeat([]byte("0"), size)}
					if err := writer.ProduceSync(limited(t), r).FirstErr(); err != nil {
						t.Fatal(err)
					}
				}
				for _, want := range []string{"0 1 3 4 6", ""} { // the second reader finds the rest done
					r, err := Read(t.Context(), b.at(b.letters), "group")
					if err != nil {
						t.Fatal(err)
					}
					var keys []string
					for {
						var page []broker.Record
						if page, err = r.Next(t.Context(), 100); err != nil || len(page) == 0 {
							break
						}
						var done []*broker.Record
						for i := range page {
							keys = append(keys, string(page[i].Key))
							done = append(done, &page[i])
						}
						if err := r.Done(t.Context(), done); err != nil {
							t.Fatal(err)
						}
					}
					if _, again := r.Next(t.Context(), 1); fmt.Sprint(again) != fmt.Sprint(err) {
						t.Errorf("asked again: %v", again)
					}
					r.Close()
					if got := strings.Join(keys, " "); got != want || nixie.CodeOf(err) != nixie.CodeInvalid ||
						!strings.Contains(err.Error(), "partition 0: records 2 to 2 inflate to more than 64 MiB") ||
						!strings.Contains(err.Error(), "records 5 to 5 inflate") {
						t.Errorf("read %q, want %q: %v", got, want, err)
					}
				}
			})
		}
	})
}
