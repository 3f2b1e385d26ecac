package sqlite_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	zs "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
)

// lived makes a store with a message in every state that there is.
func lived(t *testing.T, path string) {
	t.Helper()
	ctx := context.Background()
	s := open(t, path, sqlite.Options{})
	if err := store.Configure(ctx, s, "q", nixie.QueueSettings{DedupeScope: nixie.DedupeUnresolved}, "test", ""); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"retried", "dead", "again", "gone", "ok", "halfway", "new"} {
		if _, err := s.Enqueue(ctx, nixie.Message{Queue: "q", Key: key, DedupeKey: key, Body: []byte(key)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Enqueue(ctx, nixie.Message{Queue: "q", Key: "later", DedupeKey: "later", Delay: time.Hour}); err != nil {
		t.Fatal(err)
	}
	claim(t, s, 4, func(d *nixie.Delivery) nixie.Settlement {
		st := nixie.Settlement{Delivery: d,
			Failure: &nixie.Failure{Text: "no", Reason: nixie.ReasonHandler,
				Attachments: []nixie.Attachment{{Name: "stderr", Data: []byte("no")}}}}
		switch d.Key {
		case "retried":
			st.Verb, st.Delay = nixie.Retry, time.Hour
		case "dead", "again":
			st.Verb, st.Burial = nixie.Bury,
				&nixie.Burial{Cause: nixie.CausePermanent, Status: nixie.StatusOpen, Signature: "no", Fingerprint: "f", Redrivable: true}
		case "gone":
			st.Verb, st.Note = nixie.Discard, "not wanted"
		}
		return st
	})
	letters, _, err := s.Letters(ctx, nixie.Filter{Keys: []string{"again"}}, store.Page{})
	if err != nil || len(letters) != 1 {
		t.Fatal(letters, err)
	}
	op, err := s.Plan(ctx, store.Operation{Event: store.OnRedrive, Actor: "test"}, nixie.Filter{IDs: []nixie.ID{letters[0].ID}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Resolve(ctx, []store.Resolution{{Letter: letters[0].ID, Event: store.OnRedrive, Actor: "test",
		Operation: op.ID}})[0]; err != nil {
		t.Fatal(err)
	}
	claim(t, s, 2, func(d *nixie.Delivery) nixie.Settlement {
		if d.Key == "halfway" {
			return nixie.Settlement{}
		}
		return nixie.Settlement{Delivery: d, Verb: nixie.Complete}
	})
	if r, err := s.Check(ctx); err != nil || len(r.Violations) != 0 {
		t.Fatalf("a store that no process touched: %+v, %v", r.Violations, err)
	}
	s.Crash() // "halfway" stays leased
}

// claim takes up to n deliveries and settles those that settle answers for.
func claim(t *testing.T, s *sqlite.Store, n int, settle func(*nixie.Delivery) nixie.Settlement) {
	t.Helper()
	ds, err := s.Claim(context.Background(), "q", nixie.Want{Max: n, Lease: time.Hour})
	if err != nil || len(ds) == 0 {
		t.Fatal(ds, err)
	}
	for _, d := range ds {
		st := settle(d)
		if st.Delivery == nil {
			continue
		}
		if err := s.Settle(context.Background(), []nixie.Settlement{st})[0]; err != nil {
			t.Fatal(d.Key, err)
		}
	}
}

// TestCheckFindsCorruption damages a store by hand, one way at a time, and wants
// the rule that tells.
func TestCheckFindsCorruption(t *testing.T) {
	at := func(key string) string { return "(select pos from message where key = '" + key + "')" }
	for _, c := range []struct{ name, rule, sql string }{
		{"lost lease", "message-lost", "delete from batch"},
		{"lost end", "batch-count", "delete from log where pos = " + at("ok")},
		{"lost waiting row", "message-lost", "delete from pending where pos = " + at("later")},
		{"two states", "message-two-states", "insert into log (pos, state, ended, received) values (" + at("retried") + ", 2, 1, 1)"},
		{"handed out again", "message-passed-by", "update queue set cursor = 0"},
		{"stale lease", "lease-stale", "update pending set owner = 1 where pos = " + at("later")},
		{"lease without owner", "lease-no-owner", "delete from owner"},
		{"orphan key", "key-orphan", "insert into dedupe values (1, 'orphan', 77)"},
		{"key not let go", "key-orphan", "insert into dedupe values (1, 'ok', " + at("ok") + ")"},
		{"key lost", "key-missing", "delete from dedupe where key = 'later'"},
		{"wrong hash", "body-hash", "update message set body = x'00' where key = 'ok'"},
		{"letter without message", "letter-no-message", "delete from message where key = 'dead'"},
		{"ended without message", "row-no-message", "delete from message where key = 'gone'"},
		{"death without letter", "letter-missing", "delete from letter where pos = " + at("dead")},
		{"letter in the wrong status", "letter-status", "update letter set status = 'redriving' where pos = " + at("dead")},
		{"history gone", "letter-history", "delete from failure where pos = " + at("dead")},
		{"letter of another facet", "letter-facet", "update letter set reason = 'timeout', class = 'unknown' where pos = " + at("dead")},
		{"letters of a facet off", "letter-count", "update facet set letters = letters + 1"},
		{"facet without letters", "letter-count",
			"insert into facet select n + 1000, queue, type, status, cause, class, reason, 'other', fingerprint, redrivable, " +
				"needs_review, redrives, attempts, crashes, 1 from facet limit 1"},
		{"deaths of an hour off", "letter-count", "update counter set n = n + 1 where what = 2"},
		{"deaths in another hour", "letter-count", "update counter set slot = slot + 1 where what = 2"},
		{"deaths of no facet", "letter-count", "insert into counter values (2, 1000, 0, 1, '', 0)"},
		{"facet of other attempts", "letter-facet", "update facet set attempts = attempts + 1"},
		{"batch count off", "batch-count", "update batch set left = left + 1"},
		{"queue count off", "queue-count", "update queue set last = 3"},
		{"new messages off", "queue-count", "update queue set fresh = fresh + 1"},
		{"ended messages off", "queue-ended", "update queue set succeeded = 0"},
		{"counter off", "counters", "update pending set attempts = deliveries + 1 where pos = " + at("retried")},
		{"attachment of nothing", "attachment-orphan", "delete from failure where pos = " + at("retried")},
		{"item of nothing", "operation-item", "update item set letter = 99"},
		{"waiting item of a removed letter", "operation-item", "update item set state = 'pending', letter = 0"},
		{"item gone whose letter is on its way", "operation-outcome", "update item set state = 'gone'"},
		{"item under way for another letter", "operation-outcome", "update letter set operation = null"},
		{"item of a redrive done without an outcome", "operation-outcome", "update item set state = 'done'"},
		{"original of nothing", "original-orphan",
			"insert into original (pos, body, hash, headers, at, by) values (99, x'00', x'00', null, 1, 'ann')"},
		{"note on nothing", "note-orphan", "insert into note (letter, ordinal, at, by, text) values (99, 0, 1, 'ann', 'x')"},
		{"end gone uncounted", "queue-ended", "delete from log where pos = " + at("gone")},
		{"purge counted and not done", "queue-ended", "insert into counter values (4, 1, 0, 0, 'dead', 1)"},
		{"discards off", "queue-tally", "update counter set n = 2 where what = 5"},
		{"anchor made up", "audit-chain", "insert into anchor values (1, 1, x'00')"},
		{"audit edited", "audit-chain", "update audit set actor = 'another' where number = 1"},
		{"audit cut", "audit-chain", "delete from audit where number = 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "store.db")
			lived(t, path)
			damage(t, path, c.sql)
			s := open(t, path, sqlite.Options{})
			r, err := s.Check(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range r.Violations {
				if v.Rule == c.rule {
					t.Logf("%s: %s %s", v.Rule, v.Subject, v.Text)
					return
				}
			}
			t.Errorf("want a violation of %s, got %+v", c.rule, r.Violations)
		})
	}
}

func damage(t *testing.T, path, sql string) {
	t.Helper()
	c, err := zs.OpenConn(path, zs.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	if err := sqlitex.ExecuteTransient(c, sql, nil); err != nil {
		t.Fatal(err)
	}
	if c.Changes() == 0 {
		t.Fatalf("%s changed nothing", sql)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}
