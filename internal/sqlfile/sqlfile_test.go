package sqlfile

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestRead(t *testing.T) {
	files := fstest.MapFS{
		"sql/columns.sql": {Data: []byte("-- Part: columns of a message.\n-- out: pos, due\nm.pos,\n  m.due\n")},
		"sql/claim.sql": {Data: []byte(`-- Reads what is due,
-- oldest first.
-- in: limit — how many at most
-- in: now — the time
-- locks: message
-- out: columns,
-- out: label
select {{columns}}, ':now''s'::text
from m
-- a remark
where due <= :now and due > :now - 1 and at[1 : 2] limit :limit
`)},
	}
	all, err := Read(files, "$")
	if err != nil {
		t.Fatal(err)
	}
	f := all["claim"]
	if f.Does != "Reads what is due, oldest first." || f.Locks != "message" || f.Part || strings.Join(f.In, " ") != "limit now" || strings.Join(f.Out, " ") != "columns label" {
		t.Errorf("header: %+v", f)
	}
	if want := "select m.pos, m.due, ':now''s'::text from m where due <= $2 and due > $2 - 1 and at[1 : 2] limit $1"; f.Text != want {
		t.Errorf("text\n%s, want\n%s", f.Text, want)
	}
	if !all["columns"].Part {
		t.Error("columns is no part")
	}
	if got := Texts(files, "?")["claim"]; !strings.Contains(got, "due > ?2 - 1") {
		t.Errorf("text for SQLite: %s", got)
	}
}

func TestMistakes(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"-- Reads.\nselect :nothing", ":nothing"},
		{"-- Reads.\nselect {{nothing}}", `"nothing"`},
		{"-- Reads.\nselect {{nothing", `"nothing"`},
		{"-- Reads.\nselect {{a}}", `"a"`},
		{"-- Reads.\nselect 1 -- one\nfrom m", "-- one"},
	} {
		_, err := Read(fstest.MapFS{"sql/a.sql": {Data: []byte(c.text)}}, "?")
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "sql/a.sql") {
			t.Errorf("%q: %v", c.text, err)
		}
	}
}
