package letterfile_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/letterfile"
)

// write makes the files of a folder by their paths.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		full := filepath.Join(root, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(full), 0o700), os.WriteFile(full, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func little(id string) string {
	return `{"item_id":"` + id + `","item_data":1,"last_attempt":"2025-01-11T10:26:00Z"}`
}

// The test covers the four paths under which jobs keep their items.
func TestFolders(t *testing.T) {
	index := `{"job_id":"job-1","item_ids":["a"]}`
	for _, c := range []struct {
		name, open string
		files      map[string]string
		queues     []string
		bad        []string
		err        string
	}{
		{"the job named twice", "",
			map[string]string{"repo/job-1/mapreduce/dlq/job-1/items/a.json": little("a"),
				"repo/job-1/mapreduce/dlq/job-1/index.json": index}, []string{"mapreduce/job-1"}, nil, ""},
		{"the job named once", "", map[string]string{"repo/job-1/items/a.json": little("a"), "repo/job-1/index.json": index},
			[]string{"mapreduce/job-1"}, nil, ""},
		{"the job itself", "repo/job-2", map[string]string{"repo/job-2/items/a.json": little("a")}, []string{"mapreduce/job-2"}, nil, ""},
		{"two jobs", "", map[string]string{"x/items/a.json": little("a"), "y/items/a.json": little("a")},
			[]string{"mapreduce/x", "mapreduce/y"}, nil, ""},
		{"other files", "", map[string]string{"x/items/a.json": little("a"), "x/items/a.json.tmp": "{", "x/README": ""},
			[]string{"mapreduce/x"}, nil, ""},
		{"items alone", "x/items", map[string]string{"x/items/a.json": little("a")}, nil, []string{"an item names no queue"}, ""},
		{"a list in items", "", map[string]string{"x/items/a.json": "[" + little("a") + "]"}, nil,
			[]string{"a.json: the record is a JSON array"}, ""},
		{"torn", "", map[string]string{"x/items/a.json": little("a"), "x/items/b.json": "{\n\"item_id\":"}, []string{"mapreduce/x"},
			[]string{"b.json: line 2 is not JSON"}, ""},
		{"empty", "", map[string]string{"x/items/a.json": ""}, nil, []string{"a.json: line 1 is not JSON"}, ""},
		{"not UTF-8", "", map[string]string{"x/items/a.json": "\"\xff\""}, nil, []string{"a.json: it is not valid UTF-8"}, ""},
		{"a folder for a file", "", map[string]string{"x/items/a.json/b": ""}, nil, []string{"a.json: it is not a regular file"}, ""},
		{"missing", "", map[string]string{"x/items/b.json": little("b"), "x/index.json": `{"item_ids":["b","c"]}`}, []string{"mapreduce/x"},
			[]string{`index.json: it lists item "c", and no file in items has it`}, ""},
		{"torn and listed", "", map[string]string{"x/items/c.json": "{", "x/index.json": `{"item_ids":["c"]}`}, nil,
			[]string{"c.json: line 1 is not JSON"}, ""},
		{"torn index", "", map[string]string{"x/items/b.json": little("b"), "x/index.json": `{`}, []string{"mapreduce/x"},
			[]string{"index.json: line 1 is not JSON"}, ""},
		{"nothing", "", map[string]string{"x/y": ""}, nil, nil, "has no folder called items"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := write(t, c.files)
			letters, bad, err := drain(t, letterfile.Options{Path: filepath.Join(root, filepath.FromSlash(c.open))})
			if c.err != "" {
				if nixie.CodeOf(err) != nixie.CodeNotFound || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("error is %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var queues []string
			for _, l := range letters {
				queues = append(queues, l.Message.Queue)
			}
			if !slices.Equal(queues, c.queues) || len(bad) != len(c.bad) {
				t.Fatalf("queues %q, bad %v", queues, bad)
			}
			for i, want := range c.bad {
				if !strings.Contains(bad[i].Error(), want) {
					t.Errorf("error is %v, want one about %s", bad[i], want)
				}
			}
		})
	}
}

// The reader follows no link out of the named folder.
func TestB115_FolderIsNotLeft(t *testing.T) {
	outside := write(t, map[string]string{"secret.json": little("secret")})
	root := write(t, map[string]string{"x/items/a.json": little("a")})
	if err := os.Symlink(filepath.Join(outside, "secret.json"), filepath.Join(root, "x", "items", "b.json")); err != nil {
		t.Skip(err)
	}
	letters, bad, err := drain(t, letterfile.Options{Path: root})
	if err != nil || len(letters) != 1 || len(bad) != 1 {
		t.Fatalf("%d letters, bad %v, error %v", len(letters), bad, err)
	}
}

// The origin distinguishes items of two jobs.
func TestOriginOfItems(t *testing.T) {
	root := write(t, map[string]string{"x/items/a.json": little("a")})
	inFolder, _, err := drain(t, letterfile.Options{Path: root, Queue: "elsewhere"})
	if err != nil {
		t.Fatal(err)
	}
	if m := inFolder[0].Message; m.Queue != "elsewhere" || m.Origin.Channel != "x" || m.Origin.MessageID != "a" {
		t.Errorf("in the folder of a job: %s from %+v", m.Queue, m.Origin)
	}
	alone := readOne(t, little("a"), letterfile.Options{Queue: "q"})
	if m := alone.Message; m.Queue != "q" || m.Origin.Channel != "q" {
		t.Errorf("alone: %s from %+v", m.Queue, m.Origin)
	}
}

func TestRefusedOptions(t *testing.T) {
	root := write(t, map[string]string{"x/items/a.json": little("a")})
	for _, opts := range []letterfile.Options{
		{Path: "-", Stdin: strings.NewReader("x"), Format: "lines"},
		{Path: "-", Stdin: strings.NewReader("x"), Format: "xml"},
		{Path: "-", Stdin: strings.NewReader("x"), Queue: "\xff"},
		{Path: root, Format: "csv"},
		{},
	} {
		if _, err := letterfile.Open(opts); nixie.CodeOf(err) != nixie.CodeInvalid {
			t.Errorf("%+v: error is %v", opts, err)
		}
	}
}

func TestWhatIsNoItem(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"index":          {`{"job_id":"nightly","item_ids":["a"]}`, "give its folder"},
		"no ID":          {edit(t, "item", "item_id", `""`), "item_id is empty"},
		"number for ID":  {edit(t, "item", "item_id", "7"), "item_id is a JSON number"},
		"no data":        {edit(t, "item", "item_data", ""), "item_data is missing"},
		"no time":        {edit(t, "item", "last_attempt", ""), "last_attempt is missing"},
		"wrong time":     {edit(t, "item", "last_attempt", `"soon"`), `a time is "soon"`},
		"before 1970":    {edit(t, "item", "last_attempt", `"1969-01-01T00:00:00Z"`), "from 1970 to 2261"},
		"negative count": {edit(t, "item", "failure_count", "-1"), "failure_count is a JSON number -1"},
		"history":        {edit(t, "item", "failure_history", `"x"`), "failure_history is a JSON string"},
		"entry":          {edit(t, "item", "failure_history", `[1]`), "failure_history[0]: the record is a JSON number"},
		"no timestamp":   {edit(t, "failure", "timestamp", ""), "failure_history[0]: timestamp is missing"},
		"error type":     {edit(t, "failure", "error_type", "[]"), "error_type is neither a name"},
		"two types":      {edit(t, "failure", "error_type", `{"A":1,"B":2}`), "error_type is neither a name"},
		"duration":       {edit(t, "failure", "duration_ms", "1.5"), "duration_ms is a JSON number 1.5"},
		"worktree":       {edit(t, "item", "worktree_artifacts", "[]"), "worktree_artifacts is a JSON array"},
		"long ID":        {edit(t, "item", "item_id", `"`+strings.Repeat("x", nixie.MaxName+1)+`"`), "has 256 bytes, the limit is 255"},
		"NUL in the ID":  {edit(t, "item", "item_id", `"a\u0000"`), "holds a control character"},
	} {
		letters, bad, err := readAll(t, c.text, letterfile.Options{Queue: "q"})
		if err != nil || len(letters) > 0 || len(bad) != 1 || !strings.Contains(bad[0].Error(), c.want) {
			t.Errorf("%s: %d letters, bad %v, error %v; want %s", name, len(letters), bad, err, c.want)
		}
	}
}

func TestRecordsAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("reads more than a record may have")
	}
	from := io.MultiReader(strings.NewReader(`{"item_id":"`), io.LimitReader(endless{}, letterfile.MaxRecord),
		strings.NewReader("\"}\n"+little("a")+"\n"))
	letters, bad, err := drain(t, letterfile.Options{Path: "-", Stdin: from, Format: "jsonl", Queue: "q", TempDir: t.TempDir()})
	if err != nil || len(letters) != 1 || len(bad) != 1 || nixie.CodeOf(bad[0]) != nixie.CodeLimit {
		t.Fatalf("%d letters, bad %v, error %v", len(letters), bad, err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}
