package redrive_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/redrive"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
)

// BenchmarkSendLetters redrives letters of an office on SQLite to a broker that takes them at once.
// Run it with go test -run '^$' -bench SendLetters -benchtime 20000x ./redrive
func BenchmarkSendLetters(b *testing.B) {
	st, err := sqlite.Open(filepath.Join(b.TempDir(), "nixie.db"), sqlite.Options{Reserve: -1})
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close() //nolint:errcheck // it is thrown away
	for n := 0; n < b.N; {
		list := make([]nixie.Letter, 0, 1000)
		for ; n < b.N && len(list) < cap(list); n++ {
			id := [16]byte{1, 12: byte(n >> 24), 13: byte(n >> 16), 14: byte(n >> 8), 15: byte(n)}
			list = append(list, broker.Adopted("kafka", &broker.Record{
				Channel: "in.dlq", Offset: int64(n), ID: id, Key: fmt.Append(nil, "key ", n), Value: fmt.Appendf(nil, "%0200d", n),
				Timestamp: time.Now(),
				Headers: []broker.RecordHeader{{Name: "theirs", Value: []byte("v")}, {Name: broker.HeaderTopic, Value: []byte("in")},
					{Name: broker.HeaderFailureReason, Value: []byte("permanent_error")}},
			}, ""))
		}
		_, errs := st.Adopt(b.Context(), list, "ann", "died")
		for _, err := range errs {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	send, err := redrive.Destination{To: &post{}}.Letters()
	if err != nil {
		b.Fatal(err)
	}
	e, err := redrive.New(redrive.Config{Store: st, Send: send})
	if err != nil {
		b.Fatal(err)
	}
	op, err := e.Plan(b.Context(), store.Operation{Event: store.OnRedrive, Actor: "ann", Reason: "measured"}, nixie.Filter{}, 0)
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	if r, err := e.Run(b.Context(), op.ID); err != nil || r.Done != int64(b.N) {
		b.Fatalf("%+v, %v", r, err)
	}
}
