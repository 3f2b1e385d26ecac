package redis

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie/broker"
)

// The form of a record is the one that docs/redis.md describes.
func TestWireFormat(t *testing.T) {
	for _, c := range []struct {
		p    broker.Publication
		want string
	}{
		{broker.Publication{}, "1-:-:"},
		{broker.Publication{Key: []byte{}, Value: []byte("a:b")}, "10:3:a:b"},
		{broker.Publication{Key: []byte("k"), Headers: []broker.RecordHeader{{Name: "n", Value: []byte("v")}, {Name: ""}}},
			"11:k-:1:n1:v0:-:"},
	} {
		if got := string(encode(&c.p)); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// Positions differ: between records of a mailbox, between mailboxes, and between those of one name
// that were made one after the other.
func TestPositionsDiffer(t *testing.T) {
	seen, at := map[[16]byte]bool{}, time.UnixMilli(1_764_000_000_123)
	for _, salt := range []uint64{saltOf("a", "1.1"), saltOf("a", "2.1"), saltOf("b", "1.1")} {
		m := &mailbox{salt: salt}
		for _, id := range []string{"1", "2", "1099511627775", "x", "-1"} {
			p := m.position(id, at)
			if seen[p] || p[6]>>4 != 7 || p[8]>>6 != 2 || p != m.position(id, at) {
				t.Errorf("%x of %s", p, id)
			}
			seen[p] = true
		}
	}
}

// FuzzDecode reads any text, and reads back what encode wrote.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{"", "1:1-:-:", "5:10:3:a:b", "5:11:k-:1:n1:v0:-:", "5:1999999999:a-:", "5:11:k", "-1:1-:-:"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var r broker.Record
		if decode(text, &r) != nil {
			return
		}
		_, rest, _ := strings.Cut(text, ":")
		again := encode(&broker.Publication{Key: r.Key, Value: r.Value, Headers: r.Headers})
		var twice broker.Record
		if err := decode("1:"+string(again), &twice); err != nil {
			t.Fatal(err)
		}
		twice.Timestamp = r.Timestamp
		if !reflect.DeepEqual(r, twice) || len(again) > len(rest) && !bytes.Contains([]byte(rest), []byte("0")) {
			t.Errorf("%q became %q", text, again)
		}
	})
}
