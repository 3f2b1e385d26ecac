package sqlite_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	zs "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
)

// told makes a store with a row of each table that people read, as full as it can be.
func told(t *testing.T, path string) {
	t.Helper()
	ctx := context.Background()
	now := time.Date(2026, 5, 4, 12, 0, 0, 123456789, time.UTC)
	s := open(t, path, sqlite.Options{Clock: func() time.Time { now = now.Add(987654321); return now }})
	must(t, store.Configure(ctx, s, "q", nixie.QueueSettings{PriorityAge: 77 * time.Minute, DedupeScope: nixie.DedupeUnresolved}, "test",
		""))
	for _, key := range []string{"dead", "edited", "retried", "discarded", "done", "leased", "new"} {
		_, err := s.Enqueue(ctx, nixie.Message{
			Queue: "q", Type: "type of " + key, Key: key, Stream: "stream of " + key, DedupeKey: "dedupe of " + key,
			Body:    []byte("body of " + key),
			Headers: []nixie.Header{{Name: "header", Value: "value of " + key}}, Origin: &nixie.Origin{System: "system of " + key},
			ExpiresAt: now.Add(time.Hour),
		})
		must(t, err)
	}
	claim(t, s, 6, func(d *nixie.Delivery) nixie.Settlement {
		must(t, d.Step("step of "+d.Key, func() error { return nil }))
		st := nixie.Settlement{Delivery: d, Verb: nixie.Complete, Note: "note of " + d.Key, Failure: &nixie.Failure{
			Text: "text of " + d.Key, Stack: "stack of " + d.Key, FailedAt: now, Reason: nixie.ReasonHandler, Class: nixie.ClassPermanent,
			Attachments: []nixie.Attachment{{Name: "name of " + d.Key, Data: []byte("data of " + d.Key), Truncated: 1234567891}},
		}}
		switch d.Key {
		case "retried":
			st.Verb, st.Delay = nixie.Retry, time.Hour
		case "dead", "edited":
			st.Verb, st.Burial = nixie.Bury,
				&nixie.Burial{Cause: nixie.CausePermanent, Status: nixie.StatusOpen, Signature: "signature", Fingerprint: "fingerprint",
					Redrivable: true, Rule: "rule of it"}
		case "discarded":
			st.Verb = nixie.Discard
		case "leased":
			return nixie.Settlement{}
		case "done":
			st.Failure = nil
		}
		return st
	})
	letters, _, err := s.Letters(ctx, nixie.Filter{}, store.Page{})
	must(t, err)
	for _, l := range letters {
		r := store.Resolution{Letter: l.ID, Event: store.OnNote, Actor: "writer", Reason: "what was written"}
		if l.Message.Key == "edited" {
			r.Event, r.Edit = store.OnRedrive,
				&store.Edit{Body: []byte("repaired"), Headers: []nixie.Header{{Name: "header", Value: "repaired"}}, Revision: l.Revision}
		}
		must(t, s.Resolve(ctx, []store.Resolution{r})[0])
	}
	key := store.DocumentKey{Space: "space", Key: "key"}
	_, err = s.Features().Documents.Write(ctx, store.Writing{Queue: "q", Actor: "writer", Reason: "why", Changes: []store.DocumentChange{
		{DocumentKey: key, Verb: store.PutDocument, Value: []byte(`{"value":1}`), Label: "label", Due: now, Expires: now.Add(time.Hour)}}})
	must(t, err)
	_, err = s.Features().Documents.Write(ctx, store.Writing{Queue: "q", Actor: "writer", Reason: "why", Changes: []store.DocumentChange{
		{DocumentKey: key, Verb: store.TakeDocument, If: store.AnyRevision, Owner: "owner", Lease: time.Minute}}})
	must(t, err)
	// The redrive has dissolved the first batch.
	claim(t, s, 2, func(*nixie.Delivery) nixie.Settlement { return nixie.Settlement{} })
	s.Crash()
}

// read are the columns that people see of each table. Those that say where something
// is found by are told by the indexes and rules.
var read = map[string][]string{
	"message":    {"id", "type", "key", "stream", "dedupe", "priority", "body", "hash", "headers", "origin", "enqueued", "expires"},
	"pending":    {"due", "attempts", "deliveries", "crashes", "generation", "redrives", "number", "received", "claimed"},
	"log":        {"state", "ended", "received", "attempts", "deliveries", "generation", "number"},
	"batch":      {"claimed", "until"},
	"failure":    {"at", "decision", "reason", "text", "doc"},
	"attachment": {"name", "data", "truncated"},
	"note":       {"at", "by", "text"},
	"original":   {"body", "hash", "headers", "at", "by"},
	"letter": {"id", "status", "cause", "class", "reason", "signature", "fingerprint", "redrivable", "needs_review", "rule", "text",
		"first_failed", "last_failed",
		"died", "note", "revision"},
	"document": {"revision", "space", "key", "value", "label", "due", "expires", "owner", "until", "at", "by"},
	"audit":    {"at", "actor", "event", "subject", "reason", "hash"},
	"queue":    {"name", "last", "succeeded", "discarded", "dead", "settings"},
}

// keys name one row of a table without numbers of rows.
var keys = map[string]string{
	"failure": "printf('%d.%d', pos, ordinal)", "attachment": "printf('%d.%d', pos, ordinal)", "note": "ordinal",
	"audit": "printf('%d.%d', queue, number)",
}

// TestFlippedBitsAreFound flips a bit in each value of each row that people see,
// behind the back of indexes and sums, and wants verify to find each.
func TestFlippedBitsAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("checks the file once for each bit")
	}
	path := filepath.Join(t.TempDir(), "store.db")
	told(t, path)
	s := open(t, path, sqlite.Options{Reserve: -1})
	r, err := s.Check(t.Context())
	must(t, err)
	if len(r.Violations) != 0 {
		t.Fatalf("no process touched it: %+v", r.Violations)
	}
	must(t, s.Close())
	withoutIndexes(t, path)
	file, err := os.ReadFile(path)
	must(t, err)
	same := filepath.Join(t.TempDir(), "store.db")
	must(t, os.WriteFile(same, file, 0o600))
	dress(t, same, "update queue set name = name where n = ?1", 1)
	if verifyFinds(t, same) {
		t.Fatal("a store with everything put back on is found to be damaged")
	}
	flips := 0
	for table, columns := range read {
		for _, column := range columns {
			seen := 0
			for key, value := range valuesOf(t, path, table, column) {
				if seen++; seen > 2 {
					break
				}
				for _, flipped := range flippedIn(value) {
					flips++
					damaged := filepath.Join(t.TempDir(), "store.db")
					must(t, os.WriteFile(damaged, file, 0o600))
					dress(t, damaged, fmt.Sprintf("update %s set %s = ?1 where %s = ?2", table, column, keyOf(table)), flipped, key)
					if !verifyFinds(t, damaged) {
						t.Errorf("%s.%s of row %v: %.30v instead of %.30v is not found", table, column, key, flipped, value)
					}
				}
			}
			if seen == 0 {
				t.Errorf("no row has a %s.%s: nothing was tried", table, column)
			}
		}
	}
	t.Logf("%d flips", flips)
}

func keyOf(table string) string {
	if key := keys[table]; key != "" {
		return key
	}
	return "rowid"
}

// withoutIndexes takes the indexes and sums of a store off their tables, and keeps what the schema
// said of them.
func withoutIndexes(t *testing.T, path string) {
	t.Helper()
	script(t, path, `pragma writable_schema = on;
		create table saved as select rowid as n, type, name, tbl_name, rootpage, sql from sqlite_schema where sql is not null;
		delete from sqlite_schema where type = 'index' and sql is not null;
		update sqlite_schema set sql = replace(sql, 'generated always as (sums) stored', '') where type = 'table';
		delete from sqlite_schema where type = 'view'`)
}

// dress changes one value of such a store and puts everything back on.
func dress(t *testing.T, path, change string, args ...any) {
	t.Helper()
	c, err := zs.OpenConn(path, zs.OpenReadWrite)
	must(t, err)
	must(t, sqlitex.Execute(c, change, &sqlitex.ExecOptions{Args: args}))
	if c.Changes() != 1 {
		t.Fatalf("%s %v changed %d rows", change, args, c.Changes())
	}
	must(t, sqlitex.ExecuteScript(c, `pragma writable_schema = on;
		update sqlite_schema set sql = (select s.sql from saved s where s.name = sqlite_schema.name)
		where type = 'table' and name in (select name from saved);
		insert into sqlite_schema (type, name, tbl_name, rootpage, sql)
		select type, name, tbl_name, rootpage, sql from saved where type <> 'table' order by n`, nil))
	must(t, c.Close())
	script(t, path, "drop table saved")
}

// valuesOf are the values of a column that are not null, by the keys of their rows.
func valuesOf(t *testing.T, path, table, column string) map[any]any {
	t.Helper()
	c, err := zs.OpenConn(path, zs.OpenReadOnly)
	must(t, err)
	values := map[any]any{}
	must(t, sqlitex.Execute(c, "select "+keyOf(table)+", "+column+" from "+table+" where "+column+" is not null and "+column+" <> ''",
		&sqlitex.ExecOptions{ResultFunc: func(st *zs.Stmt) error {
			var key any = st.ColumnText(0)
			if st.ColumnType(0) == zs.TypeInteger {
				key = st.ColumnInt64(0)
			}
			switch st.ColumnType(1) {
			case zs.TypeInteger:
				values[key] = st.ColumnInt64(1)
			case zs.TypeBlob:
				blob := make([]byte, st.ColumnLen(1))
				st.ColumnBytes(1, blob)
				values[key] = blob
			default:
				values[key] = st.ColumnText(1)
			}
			return nil
		}}))
	must(t, c.Close())
	return values
}

// flippedIn are a value with one bit changed, at two positions.
func flippedIn(value any) []any {
	switch v := value.(type) {
	case int64:
		return []any{v ^ 1, v ^ 1<<13}
	case []byte:
		first, last := bytes.Clone(v), bytes.Clone(v)
		first[0] ^= 1
		last[len(v)-1] ^= 1 << 6
		return []any{first, last}
	default:
		text := []byte(v.(string))
		text[len(text)/2] ^= 1
		return []any{string(text)}
	}
}

// verifyFinds reports whether a store is found to be damaged.
func verifyFinds(t *testing.T, path string) bool {
	t.Helper()
	s, err := sqlite.Open(path, sqlite.Options{Reserve: -1})
	if err != nil {
		return true // it is found even sooner
	}
	defer s.Close() //nolint:errcheck // of a damaged file it may fail
	r, err := s.Check(t.Context())
	return err != nil || len(r.Violations) > 0
}

// A view that says something else would be read, too.
func TestChangedViewIsFound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	told(t, path)
	script(t, path, `pragma writable_schema = on;
		update sqlite_schema set sql = replace(sql, 'm.headers', 'm.dedupe as headers') where name = 'current';
		create table mine (n int)`)
	s := open(t, path, sqlite.Options{Reserve: -1})
	r, err := s.Check(t.Context())
	must(t, err)
	if len(r.Violations) != 1 || r.Violations[0].Rule != "view-differs" || r.Violations[0].Subject != "current" {
		t.Errorf("%+v", r.Violations)
	}
}
