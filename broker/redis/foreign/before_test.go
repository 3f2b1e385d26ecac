package foreign

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	clerks "github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store/sqlite"
)

// TestLettersOfBefore imports letters that a version exported which knew no server and no hash of a
// body: of all job queues and of Kafka. Adopting what they came from again adds nothing. Each
// redrive goes, or is refused in words and changes nothing, and the store is sound.
func TestLettersOfBefore(t *testing.T) {
	c, _ := database(t)
	st, err := sqlite.Open(t.TempDir()+"/s.db", sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := &office{st, t}
	file, err := os.ReadFile("testdata/letters_of_before.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	clerk, err := clerks.New(clerks.Config{Store: st, Actor: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range bytes.Split(bytes.TrimSpace(file), []byte("\n")) {
		var view clerks.LetterDetail
		if err := json.Unmarshal(line, &view); err != nil {
			t.Fatal(err)
		}
		l, err := view.Letter()
		if err != nil {
			t.Fatal(err)
		}
		l.Damage, l.Message.Hash = nil, nixie.Hash{}
		if receipts, errs := clerk.Adopt(t.Context(), []nixie.Letter{l}, "imported"); errs[0] != nil || receipts[0].Duplicate {
			t.Fatalf("%s: %+v, %v", l.Message.Key, receipts[0], errs[0])
		}
	}
	letters := o.letters()
	if len(letters) != 9 {
		t.Fatalf("%d letters", len(letters))
	}
	again := func(format string, r broker.Record) {
		l := broker.Adopted(format, &r, "")
		for _, adopt := range []func() ([]nixie.Receipt, []error){
			func() ([]nixie.Receipt, []error) { return clerk.PreviewAdopt(t.Context(), []nixie.Letter{l}) },
			func() ([]nixie.Receipt, []error) { return clerk.AdoptDeaths(t.Context(), []nixie.Letter{l}, "again") },
		} {
			if receipts, errs := adopt(); errs[0] != nil || !receipts[0].Duplicate {
				t.Errorf("%s %s came in again: %+v, %v", format, r.Key, receipts[0], errs[0])
			}
		}
	}
	for _, f := range forms {
		if f.name == "BullMQ 5, paused" || f.name == "Bull 4" { // that version took them for the job of BullMQ 6
			continue
		}
		run(t, c, append([][]any{{"FLUSHDB"}}, f.put...))
		f.Adopts = true
		for _, r := range readAll(t, c, f.Config) {
			again(f.Format, r)
		}
		for _, l := range letters {
			if l.Message.Origin.System != f.Format {
				continue
			}
			was := dump(t, c)
			err := o.redrive(c, f.Config, nil, l)[0]
			if changed := dump(t, c) != was; changed == (err != nil) || err != nil && !strings.Contains(err.Error(), "job ") {
				t.Errorf("%s: changed %v, %v", f.name, changed, err)
			}
			t.Logf("%s: %v", f.name, err)
		}
	}
	at := time.UnixMilli(1700000002500)
	again("kafka", broker.Record{Channel: "orders.dlq", Partition: 1, Offset: 7, Key: []byte("k1"), Value: []byte(`{"n":7}`), Timestamp: at,
		ID: [16]byte{1, 2, 3, 6: 0x70, 8: 0x80}, Server: "cluster"})
	again("kafka", broker.Record{Channel: "orders.dlq", Timestamp: at, ID: [16]byte{1, 2, 4, 6: 0x70, 8: 0x80}, Server: "cluster"})
	if report, err := st.Check(t.Context()); err != nil || len(report.Violations) > 0 {
		t.Errorf("%+v, %v", report, err)
	}
	if err := st.Close(); err != nil {
		t.Error(err)
	}
}
