package command

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/nixie-go/nixie"
)

// A small output is in memory, a large one is in a file without a name, and both
// are read as they were written.
func TestOutputIsWhole(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	for _, size := range []int{0, 1, OutputInMemory, OutputInMemory + 1, 3 * OutputInMemory} {
		var o Output
		want := bytes.Repeat([]byte("0123456789\n"), size/11+1)[:size]
		for part := range bytes.SplitAfterSeq(want, []byte("7")) {
			if n, err := o.Write(part); n != len(part) || err != nil {
				t.Fatalf("%d, %v", n, err)
			}
		}
		for range 2 {
			got, err := io.ReadAll(o.Reader())
			if err != nil || !bytes.Equal(got, want) || o.Size() != int64(size) {
				t.Errorf("%d bytes: %d are read, %d are kept, %v", size, len(got), o.Size(), err)
			}
		}
		if lost, why := o.Lost(); lost != 0 || why != nil {
			t.Errorf("%d bytes: %d are lost, %v", size, lost, why)
		}
		if left, err := os.ReadDir(folder); err != nil || len(left) > 0 || len(o.head) > OutputInMemory {
			t.Errorf("%d bytes: files %v, %d bytes in memory, %v", size, left, len(o.head), err)
		}
		o.Close()
	}
}

// Output counts the bytes that it cannot keep, with the reason, and keeps none after the gap.
func TestOutputThatIsLost(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()+"/gone")
	var o Output
	whole := strings.Repeat("x", OutputInMemory+10)
	if n, err := io.WriteString(&o, whole); n != len(whole) || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	if _, err := io.WriteString(&o, "more"); err != nil {
		t.Fatal(err)
	}
	lost, why := o.Lost()
	if lost != 14 || o.Size() != OutputInMemory || nixie.CodeOf(why) != nixie.CodeUnavailable || !strings.Contains(why.Error(), "TMPDIR") {
		t.Errorf("%d are lost, %d are kept: %v", lost, o.Size(), why)
	}
}

// The error names the limit.
func TestOutputOverItsLimit(t *testing.T) {
	o := Output{size: MaxOutput - 3}
	if _, err := io.WriteString(&o, "12345"); err != nil {
		t.Fatal(err)
	}
	lost, why := o.Lost()
	if lost != 2 || o.Size() != MaxOutput || nixie.CodeOf(why) != nixie.CodeLimit || !strings.Contains(why.Error(), "1073741824") {
		t.Errorf("%d are lost, %d are kept: %v", lost, o.Size(), why)
	}
}
