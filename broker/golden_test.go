package broker_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/check"
	"github.com/nixie-go/nixie/office"
)

// update writes the golden letters again: go test ./broker -run TestGoldenLetters -update
var update = flag.Bool("update", false, "write the golden letters anew")

// recorded reads a file of records that other programs wrote.
func recorded(t *testing.T, file string) (list []broker.Record) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		var r struct {
			Topic             string
			Partition         int32
			Offset, Timestamp int64
			Key, Value        []byte
			Headers           []broker.RecordHeader
		}
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		list = append(list, broker.Record{
			Channel: r.Topic, Partition: r.Partition, Offset: r.Offset, Key: r.Key, Value: r.Value, Headers: r.Headers,
			ID: nixie.ID{6: 0x70, 8: 0x80, 15: byte(len(list) + 1)}, Timestamp: time.UnixMilli(r.Timestamp),
		})
	}
	return list
}

// The letters of records that other programs wrote equal those in testdata/golden, one a line, as
// dlq show -o json prints them.
func TestGoldenLetters(t *testing.T) {
	files, err := filepath.Glob("kafka/testdata/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			for _, r := range recorded(t, file) {
				l := broker.Adopted("kafka", &r, "")
				if err := check.Letter(&l); err != nil {
					t.Error(err)
				}
				line, err := json.Marshal(office.ViewLetterDetail(&l))
				if err != nil {
					t.Fatal(err)
				}
				got.Write(append(line, '\n'))
			}
			golden := filepath.Join("testdata", "golden", name)
			if *update {
				if err := os.WriteFile(golden, got.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if at := differ(got.Bytes(), want); at >= 0 {
				t.Errorf("line %d is …%s…\nwant …%s…", 1+bytes.Count(want[:at], []byte("\n")), around(got.Bytes(), at), around(want, at))
			}
		})
	}
}

// differ returns the first index at which two texts differ, or −1.
func differ(a, b []byte) int {
	for at := range min(len(a), len(b)) {
		if a[at] != b[at] {
			return at
		}
	}
	if len(a) == len(b) {
		return -1
	}
	return min(len(a), len(b))
}

func around(text []byte, at int) []byte { return text[max(at-80, 0):min(at+80, len(text))] }

// Watermill writes value and stack of a panic into one text. Panics of one line of code with one
// value form a group, and the stack does not hide the value.
func TestPanicsOfWatermillAreGroups(t *testing.T) {
	groups := map[string]string{}
	for _, r := range recorded(t, "kafka/testdata/watermill-1.5.1-panics.jsonl") {
		l := broker.Adopted("kafka", &r, "")
		f := &l.History[0]
		if other, taken := groups[l.Fingerprint]; taken {
			t.Errorf("%q and %q are one group", other, f.Text)
		}
		groups[l.Fingerprint] = f.Text
		if panicked := f.Reason == nixie.ReasonPanic; strings.Contains(f.Text, "goroutine") ||
			panicked != strings.Contains(f.Stack, "\nmain.charge(") || strings.Contains(f.Stack, "Recoverer.func1.1") {
			t.Errorf("%s: %q with stack %q", f.Reason, f.Text, f.Stack)
		}
	}
}

// IsRetry tells records on retry topics from dead ones, by Spring's headers and ours, under any
// topic name.
func TestIsRetry(t *testing.T) {
	for _, c := range []struct {
		file   string
		source string
		waits  bool
	}{
		{"spring-kafka-3.3.10-waiting", "mails mails bills bills", true},
		{"spring-kafka-3.3.10-retries", "mails bills", false},
		{"spring-kafka-3.3.10", "  spring-retried spring-retried", false},
		{"watermill-1.5.1-panics", "   ", false},
	} {
		var sources []string
		for _, r := range recorded(t, "kafka/testdata/"+c.file+".jsonl") {
			source, waits := broker.IsRetry(&r)
			if sources = append(sources, source); waits != c.waits {
				t.Errorf("%s: a record of %s waits: %t", c.file, r.Channel, waits)
			}
		}
		if got := strings.Join(sources, " "); got != c.source {
			t.Errorf("%s: sources are %q", c.file, got)
		}
	}
	ours := broker.Record{Channel: "orders.retry.5s",
		Headers: []broker.RecordHeader{{Name: broker.HeaderTopic, Value: []byte("orders")}, {Name: broker.HeaderDue, Value: []byte("5")}}}
	if source, waits := broker.IsRetry(&ours); source != "orders" || !waits {
		t.Errorf("on our own stage: %q, %t", source, waits)
	}
}
