package store_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

func folder(names ...string) fstest.MapFS {
	files := fstest.MapFS{}
	for _, name := range names {
		files["m/"+name] = &fstest.MapFile{Data: []byte(name)}
	}
	return files
}

// TestReadMigrations reads good and bad folders of migrations.
func TestReadMigrations(t *testing.T) {
	list, err := store.ReadMigrations(folder("0002_b.down.sql", "0001_a.up.sql", "0001_a.down.sql", "0002_b.up.sql"))
	if err != nil || len(list) != 2 || list[0].Name != "a" || list[1].Version != 2 ||
		list[1].Up != "0002_b.up.sql" || list[1].Down != "0002_b.down.sql" {
		t.Errorf("read %+v, %v", list, err)
	}
	for _, c := range []struct{ names, text string }{
		{"0001_a.up.sql", "migration 1: want an up and a down file"},
		{"0001_a.up.sql 0001_a.down.sql 0003_c.up.sql 0003_c.down.sql", "migration 2: want"},
		{"1_a.up.sql", "name it like"},
		{"0001_a.sql", "name it like"},
	} {
		if _, err := store.ReadMigrations(folder(strings.Fields(c.names)...)); err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want %q", c.names, err, c.text)
		}
	}
}

// TestSteps finds the migrations between the present version and another.
func TestSteps(t *testing.T) {
	for _, c := range []struct {
		have, version int
		down          bool
		want          string
	}{
		{0, 0, false, "[1 2 3]"}, {0, 2, false, "[1 2]"}, {1, 0, false, "[2 3]"}, {3, 0, false, "[]"}, {3, 1, false, "[]"},
		{3, 0, true, "[3 2 1]"}, {3, 1, true, "[3 2]"}, {2, 0, true, "[2 1]"}, {1, 2, true, "[]"}, {0, 0, true, "[]"},
		{0, 4, false, "error"}, {0, -1, true, "error"},
	} {
		list := []store.Migration{
			{Version: 1, Applied: c.have >= 1}, {Version: 2, Applied: c.have >= 2}, {Version: 3, Applied: c.have >= 3},
		}
		steps, err := store.Steps(list, c.version, c.down)
		got := []int{}
		for _, s := range steps {
			got = append(got, s.Version)
		}
		text := fmt.Sprint(got)
		if err != nil {
			text = "error"
			if nixie.CodeOf(err) != nixie.CodeInvalid {
				t.Errorf("version %d: %v", c.version, err)
			}
		}
		if text != c.want {
			t.Errorf("%d to %d, down %v: %s, want %s", c.have, c.version, c.down, text, c.want)
		}
	}
}
