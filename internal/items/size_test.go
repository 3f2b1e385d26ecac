package items

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/nixie-go/nixie"
)

// writeList makes a list of n small items and returns its path.
func writeList(t testing.TB, n int, format Format) string {
	t.Helper()
	var b bytes.Buffer
	if format == JSON {
		b.WriteString("[\n")
	}
	if format == CSV {
		b.WriteString("id,name,size\n")
	}
	for i := range n {
		switch format {
		case CSV:
			fmt.Fprintf(&b, "item-%d,\"name of %d\",%d\n", i, i, i)
		case Lines:
			fmt.Fprintf(&b, "file/number/%d.go\n", i)
		case JSON:
			if i > 0 {
				b.WriteString(",\n")
			}
			fmt.Fprintf(&b, `{"id":"item-%d","name":"name of %d","size":%d}`, i, i, i)
		default:
			fmt.Fprintf(&b, "{\"id\":\"item-%d\",\"name\":\"name of %d\",\"size\":%d}\n", i, i, i)
		}
	}
	if format == JSON {
		b.WriteString("\n]\n")
	}
	path := filepath.Join(t.TempDir(), "list."+string(format))
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// repeat is a stream of n copies of a text between two others.
type repeat struct {
	text []byte
	left int
	part []byte
	end  string
}

func (r *repeat) Read(p []byte) (int, error) {
	if len(r.part) == 0 {
		switch {
		case r.left > 0:
			r.left--
			r.part = r.text
		case r.end != "":
			r.part, r.end = []byte(r.end), ""
		default:
			return 0, io.EOF
		}
	}
	n := copy(p, r.part)
	r.part = r.part[n:]
	return n, nil
}

// A parser must not hold what it has read: for every format it reads 24 MiB of list in a few MiB of
// memory. TestIDMemory measures the set of IDs.
func TestFlatMemory(t *testing.T) {
	big := bytes.Repeat([]byte("x"), 32<<10)
	const n = 24 << 20 / (32 << 10)
	path, err := parsePath("$.a[*]")
	if err != nil {
		t.Fatal(err)
	}
	wide := append([]byte(`"`), append(big, "\",\n"...)...)
	for _, c := range []struct {
		name   string
		parser parser
		want   int
	}{
		{"jsonl", &lineParser{lines: newLineReader("l", &repeat{text: append(append([]byte(`"`), big...), "\"\n"...), left: n}),
			json: true}, n},
		{"lines", &lineParser{lines: newLineReader("l", &repeat{text: append(append([]byte{}, big...), '\n'), left: n})}, n},
		{"csv", &table{lines: newLineReader("l", &repeat{text: append(append([]byte{}, big...), '\n'), left: n}), comma: ','}, n - 1},
		{"chosen", newDocument("l", io.MultiReader(bytes.NewReader([]byte(`{"a":[`)), &repeat{text: wide, left: n, end: `1]}`}), path,
			"$.a[*]"), n + 1},
		{"passed over",
			newDocument("l", io.MultiReader(bytes.NewReader([]byte(`{"b":[`)), &repeat{text: wide, left: n, end: `1],"a":[2]}`}), path,
				"$.a[*]"), 1},
	} {
		before := heap()
		count := 0
		for {
			if _, err := c.parser.next(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if count++; count%(n/4) == 0 {
				if now := heap(); now > before+4<<20 {
					t.Fatalf("%s: the heap grew from %d to %d bytes", c.name, before, now)
				}
			}
		}
		if now := heap(); count != c.want || now > before+4<<20 {
			t.Errorf("%s: %d items, want %d; the heap grew from %d to %d bytes", c.name, count, c.want, before, now)
		}
	}
}

// The parser reads past a value that is too large and does not hold it.
func TestHugeValue(t *testing.T) {
	quarter := bytes.Repeat([]byte("x"), nixie.MaxBody/4)
	stream := io.MultiReader(bytes.NewReader([]byte(`["`)), &repeat{text: quarter, left: 16, end: `",2]`})
	path, err := parsePath("$[*]")
	if err != nil {
		t.Fatal(err)
	}
	d := newDocument("l", stream, path, "")
	huge, err := d.next()
	if err != nil || huge.size != 4*nixie.MaxBody+2 || len(huge.raw) != nixie.MaxBody {
		t.Fatalf("the value has %d bytes, %d kept, %v", huge.size, len(huge.raw), err)
	}
	if cap(d.buf) > 3*nixie.MaxBody {
		t.Errorf("the window has %d bytes", cap(d.buf))
	}
	if next, err := d.next(); err != nil || string(next.body) != "2" {
		t.Errorf("after it comes %q, %v", next.body, err)
	}
}

// The name of a member may be larger than an item. No step of a path names such a member.
func TestHugeName(t *testing.T) {
	list := `{"` + strings.Repeat("x", 3*scanBuffer) + `":1,"a":[2]}`
	for path, want := range map[string][]string{"$.a": {"2"}, "$.*": {"1", "[2]"}} {
		got, err := readAll(t, list, Options{JSONPath: path, MaxItem: 1000})
		var bodies []string
		for _, item := range got {
			bodies = append(bodies, string(item.Body))
		}
		if err != nil || !slices.Equal(bodies, want) {
			t.Errorf("%s: %q, want %q, %v", path, bodies, want, err)
		}
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestIDMemory(t *testing.T) {
	const n, perID = 200_000, 80
	before := heap()
	ids := newIdentities("id")
	item := Item{}
	for i := range n {
		item.Body = fmt.Appendf(item.Body[:0], `{"id":"an-id-that-is-rather-long-as-ids-go-%d"}`, i)
		if _, bad := ids.idOf("l", &item); bad != nil {
			t.Fatal(bad)
		}
	}
	if grown := heap() - before; grown > n*perID {
		t.Errorf("%d IDs took %d bytes, more than %d each", n, grown, perID)
	}
	runtime.KeepAlive(ids)
}

func BenchmarkNext(b *testing.B) {
	const n = 100_000
	for _, format := range []Format{JSONL, JSON, CSV, Lines} {
		b.Run(string(format), func(b *testing.B) {
			path := writeList(b, n, format)
			for b.Loop() {
				r, err := Open(Options{Path: path, Format: format})
				if err != nil {
					b.Fatal(err)
				}
				items, err := drain(b, r)
				if err != nil || len(items) != n {
					b.Fatalf("%d items, %v", len(items), err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/item")
		})
	}
}

// An item that is far too large costs the memory of one that is not, once, in every format.
func TestWhatIsTooLargeIsHeldOnce(t *testing.T) {
	const limit = 32 << 20
	for _, format := range []Format{JSONL, JSON, CSV} {
		large := &repeat{text: bytes.Repeat([]byte("x"), 1<<20), left: 3 * limit >> 20, end: `"}`}
		stream := io.MultiReader(strings.NewReader(`{"x":"`), large)
		list, err := Open(Options{Path: "-", Stdin: stream, Format: format, SkipBad: true, Objects: true, MaxItem: limit})
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		item, err := list.Next()
		runtime.ReadMemStats(&after)
		if err == nil {
			err = item.Bad
		}
		if nixie.CodeOf(err) != nixie.CodeLimit {
			t.Errorf("%s: %v", format, err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > limit+12<<20 {
			t.Errorf("%s: it took %d MiB to refuse an item beyond %d", format, took>>20, limit>>20)
		}
		if err := list.Close(); err != nil {
			t.Error(err)
		}
	}
}
