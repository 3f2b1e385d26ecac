package itemdir_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/itemfile"
	"github.com/nixie-go/nixie/store"
)

// hostile are IDs that would mean something else as file names.
var hostile = []string{
	"plain", "../../outside", "/etc/passwd", "..", ".", ".hidden", "-rf", "a/b", `a\b`, "index", "INDEX", "über", "CON", "Item", "item",
	"%2F", strings.Repeat("long", 60), strings.Repeat("long", 60) + "er", " ", "a:b", "$(touch x)", "*",
}

// letterOf makes a letter of a job.
func letterOf(n int, job, id string) nixie.Letter {
	died := noon.Add(time.Duration(n) * time.Second)
	l := nixie.Letter{
		Signature: "broken", Redrivable: true, FirstFailedAt: died, LastFailedAt: died, DiedAt: died,
		Message: nixie.Message{Queue: itemfile.QueueOf(job), Key: id, Body: fmt.Appendf(nil, `{"n":%d}`, n)},
		History: []nixie.Failure{{FailedAt: died, Reason: nixie.ReasonTimeout, Text: fmt.Sprint("late ", n)}},
	}
	l.ID[15], l.Message.ID[15] = byte(n+1), byte(n+101)
	return l
}

func export(t testing.TB, folder string, letters ...nixie.Letter) {
	t.Helper()
	w, err := itemfile.NewWriter(folder, clock)
	if err != nil {
		t.Fatal(err)
	}
	for i := range letters {
		item, err := itemfile.ItemOf(&letters[i])
		if err == nil {
			err = w.Write(&letters[i], item)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// index reads the index of a job.
func index(t testing.TB, folder, job string) map[string]any {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(folder, job, "mapreduce", "dlq", job, itemfile.IndexFile))
	var says map[string]any
	if err == nil {
		err = json.Unmarshal(raw, &says)
	}
	if err != nil {
		t.Fatal(err)
	}
	return says
}

// bodies reads the bodies in a folder of items, by key.
func bodies(t testing.TB, folder string) map[string]string {
	t.Helper()
	held := map[string]string{}
	for _, l := range all(t, open(t, folder), nixie.Filter{}, store.Page{Whole: true}) {
		held[l.Message.Key] += string(l.Message.Body) + strings.Join(l.Damage, "")
	}
	return held
}

// An item with any ID is a file of its own in its folder, with the ID inside. No file is written
// elsewhere.
func TestHostileIDs(t *testing.T) {
	root := t.TempDir()
	folder := filepath.Join(root, "below", "dlq")
	var letters []nixie.Letter
	want := map[string]string{}
	for n, id := range hostile {
		letters = append(letters, letterOf(n, "nightly", id))
		want[id] = fmt.Sprintf(`{"n":%d}`, n)
	}
	export(t, folder, letters...)
	if have := bodies(t, folder); !reflect.DeepEqual(have, want) {
		t.Errorf("have %v\nwant %v", have, want)
	}
	ids := index(t, folder, "nightly")["item_ids"].([]any)
	if len(ids) != len(hostile) {
		t.Errorf("the index lists %d of %d", len(ids), len(hostile))
	}
	items := job(folder, "nightly")
	items = filepath.Join(folder, "nightly", "mapreduce", "dlq", "nightly", filepath.Base(items))
	lower := map[string]bool{}
	err := filepath.WalkDir(root, func(at string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && filepath.Dir(at) != items && filepath.Base(at) != itemfile.IndexFile {
			t.Errorf("%s was made", at)
		}
		if lower[strings.ToLower(at)] {
			t.Errorf("%s is there twice where capitals are the same", at)
		}
		lower[strings.ToLower(at)] = true
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// An export keeps other items, unknown fields of the index, and a second letter with the same ID.
// An item that is exported again is replaced.
func TestExportIntoAFolderThatIsThere(t *testing.T) {
	folder := t.TempDir()
	export(t, folder, letterOf(1, "nightly", "a"), letterOf(2, "nightly", "b"))
	at := filepath.Join(folder, "nightly", "mapreduce", "dlq", "nightly")
	says := index(t, folder, "nightly")
	says["owner"], says["item_count"] = "ann", 99
	raw, _ := json.Marshal(says)
	write(t, filepath.Join(at, itemfile.IndexFile), raw)
	export(t, folder, letterOf(3, "nightly", "b"), letterOf(4, "nightly", "c"), letterOf(5, "nightly", "c"), letterOf(6, "weekly", "a"))
	have := index(t, folder, "nightly")
	want := map[string]any{"job_id": "nightly", "item_count": 3.0, "item_ids": []any{"a", "b", "c"}, "updated_at": "2026-05-04T13:00:00Z",
		"owner": "ann"}
	if !reflect.DeepEqual(have, want) {
		t.Errorf("index %v, want %v", have, want)
	}
	held := bodies(t, folder)
	if held["b"] != `{"n":3}` || held["c"] != `{"n":5}{"n":4}` || held["a"] != `{"n":6}{"n":1}` {
		t.Errorf("held %v", held)
	}
	export(t, folder, letterOf(4, "nightly", "c"), letterOf(5, "nightly", "c"))
	if again := bodies(t, folder); !reflect.DeepEqual(again, held) {
		t.Errorf("exported again %v, want %v", again, held)
	}
	write(t, filepath.Join(at, itemfile.IndexFile), []byte(`{"item_ids":["to`))
	export(t, folder, letterOf(4, "nightly", "c"))
	if ids := index(t, folder, "nightly")["item_ids"].([]any); !slices.Equal(ids, []any{"a", "b", "c"}) {
		t.Errorf("a damaged index became %v", ids)
	}
}

// A message without a key is exported under its ID.
func TestItemsWithoutAKey(t *testing.T) {
	folder := t.TempDir()
	l := letterOf(1, "orders", "")
	export(t, folder, l)
	if held := bodies(t, folder); held[l.Message.ID.String()] != `{"n":1}` {
		t.Errorf("held %v", held)
	}
}
