package faultdisk

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func full(letter string) []byte { return bytes.Repeat([]byte(letter), page) }

// build makes a trace of one file "f" that existed with the given content.
func build(content []byte, changes ...Change) *replay {
	tr := newTrace()
	inode := tr.adopt("f", content)
	for _, c := range changes {
		c.File, c.inode = "f", inode
		tr.add(c)
	}
	r := newReplay(tr)
	r.advance(len(changes))
	return r
}

func write(offset int64, data []byte) Change {
	return Change{Kind: Written, Offset: offset, Data: data}
}

func cut(size int64) Change { return Change{Kind: Truncated, Offset: size} }

// images returns the distinct contents of "f" over many seeds, as one letter
// per half page so that they can be read.
func images(t testing.TB, r *replay, mode Mode) []string {
	t.Helper()
	seen := map[string]bool{}
	for seed := range uint64(200) {
		files, err := r.image(mode, seed)
		if err != nil {
			t.Fatal(err)
		}
		seen[sketch(files["f"])] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// sketch shows each half page by its first letter, "." for zero, "~" where the
// half is mixed and "<" where the file ends before the half does.
func sketch(content []byte) string {
	var s []byte
	for half := range slices.Chunk(content, page/2) {
		letter := half[0]
		switch {
		case len(half) < page/2:
			letter = '<'
		case len(bytes.Trim(half, string(letter))) > 0:
			letter = '~'
		case letter == 0:
			letter = '.'
		}
		s = append(s, letter)
	}
	return string(s)
}

// What each mode makes of an overwrite and an append that are not synced.
func TestModes(t *testing.T) {
	r := build(slices.Concat(full("A"), full("B")), write(0, full("C")), write(2*page, full("D")))
	for mode, want := range map[Mode][]string{
		None:   {"AABB"},
		All:    {"CCBBDD"},
		Prefix: {"AABB", "CCBB", "CCBBDD"},
		Length: {"CCBB"},
	} {
		if got := images(t, r, mode); !slices.Equal(got, want) {
			t.Errorf("%v: %q, want %q", mode, got, want)
		}
	}
	for mode, want := range map[Mode][]string{
		Subset: {"AABB", "AABB..", "AABBDD", "CCBB", "CCBBDD", "CCBB.."},
		Torn:   {"CCBB", "CCBB..", "CCBBD.", "CCBB.D"},
		Chunk:  {"CCBB..", "CCBB~~"},
	} {
		got := images(t, r, mode)
		for _, w := range want {
			if !slices.Contains(got, w) {
				t.Errorf("%v never gave %q, only %q", mode, w, got)
			}
		}
	}
	if slices.Contains(images(t, r, Torn), "CCBBDD") {
		t.Error("torn kept the whole write")
	}
}

// A cut that may not have happened, and bytes written after it.
func TestSubsetAroundCut(t *testing.T) {
	r := build(slices.Concat(full("A"), full("B")), cut(page), write(page, full("C")))
	want := []string{"AA", "AA..", "AABB", "AACC"}
	for _, got := range images(t, r, Subset) {
		// Half sectors may differ, but new bytes never come with the old length
		// and old bytes never with the new one.
		if bytes.ContainsAny([]byte(got), "B") && bytes.ContainsAny([]byte(got), "C~.") {
			t.Errorf("image %q mixes both sides of the cut", got)
		}
	}
	got := images(t, r, Subset)
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Errorf("subset never gave %q, only %q", w, got)
		}
	}
}

// Syncs that fail make nothing durable, nor does the next one unless the page
// is written again.
func TestSyncAfterFailedSync(t *testing.T) {
	old := slices.Concat(full("A"), full("A"))
	lost := []Change{write(0, full("B")), write(page, full("B")), {Kind: SyncFailed}}
	for name, c := range map[string]struct {
		then      []Change
		want, all string
	}{
		"failed":          {nil, "AAAA", "BBBB"},
		"repeated":        {[]Change{{Kind: Synced}}, "AAAA", "BBBB"},
		"written again":   {[]Change{write(0, []byte("B")), {Kind: Synced}}, "BBAA", "BBBB"},
		"written further": {[]Change{write(2*page, full("C")), {Kind: Synced}}, "AAAACC", "BBBBCC"},
		"cut":             {[]Change{cut(page), {Kind: Synced}}, "AA", "BB"},
		"cut and grown":   {[]Change{cut(page), write(2*page, full("C")), {Kind: Synced}}, "AA..CC", "BB..CC"},
	} {
		r := build(old, append(slices.Clone(lost), c.then...)...)
		if got := images(t, r, None); !slices.Equal(got, []string{c.want}) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if got := images(t, r, All); !slices.Equal(got, []string{c.all}) {
			t.Errorf("%s, nothing lost: %q, want %q", name, got, c.all)
		}
	}
}

// Names are kept separately from files and come back in order.
func TestNames(t *testing.T) {
	tr := newTrace()
	old := tr.adopt("old", []byte("old"))
	tr.add(Change{Kind: Deleted, File: "old"})
	first := tr.create("new")
	tr.add(Change{Kind: Written, File: "new", Data: []byte("new"), inode: first})
	tr.add(Change{Kind: Synced, File: "new", inode: first})
	tr.add(Change{Kind: DirSynced, File: "."})
	if old == first {
		t.Fatal("two files share an inode")
	}
	for ops, want := range map[int][]string{
		1: {"map[]", "map[old:old]"},
		4: {"map[]", "map[new:new]", "map[old:old]"},
		5: {"map[new:new]"},
	} {
		r := newReplay(tr)
		r.advance(ops)
		seen := map[string]bool{}
		for seed := range uint64(50) {
			for _, mode := range []Mode{None, All, DirLost} {
				files, err := r.image(mode, seed)
				if err != nil {
					t.Fatal(err)
				}
				seen[fmt.Sprintf("%s", files)] = true
			}
		}
		if got := slices.Sorted(maps.Keys(seen)); !slices.Equal(got, want) {
			t.Errorf("after %d changes: %q, want %q", ops, got, want)
		}
	}
}

// drawTrace draws changes of a few small files, synced at random, and returns
// the trace with the contents as the program sees them.
func drawTrace(t *rapid.T) (*trace, map[string][]byte) {
	tr := newTrace()
	seen := map[string][]byte{}
	for n := range rapid.IntRange(1, 40).Draw(t, "changes") {
		name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "file")
		inode, exists := tr.names[name]
		if !exists {
			inode = tr.create(name)
			seen[name] = nil
		}
		c := Change{File: name, inode: inode, DirSync: rapid.Bool().Draw(t, "dir")}
		switch c.Kind = rapid.SampledFrom([]Kind{Written, Written, Written, Truncated, Synced, SyncFailed, Deleted}).Draw(t,
			"kind"); c.Kind {
		case Written:
			c.DirSync = false
			c.Offset = rapid.Int64Range(0, 3*page).Draw(t, "offset")
			c.Data = bytes.Repeat([]byte{byte(n + 1)}, rapid.IntRange(1, 2*page).Draw(t, "length"))
			content := seen[name]
			if end := int(c.Offset) + len(c.Data); end > len(content) {
				content = append(content, make([]byte, end-len(content))...)
			}
			copy(content[c.Offset:], c.Data)
			seen[name] = content
		case Truncated:
			c.DirSync = false
			c.Offset = rapid.Int64Range(0, int64(len(seen[name]))).Draw(t, "size")
			seen[name] = seen[name][:c.Offset:c.Offset]
		case SyncFailed:
			c.DirSync = false
		case Deleted:
			delete(tr.names, name)
			delete(seen, name)
		}
		tr.add(c)
	}
	return tr, seen
}

// The mode All shows what the program sees, at every step of any trace.
func TestAllIsWhatTheProgramSees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr, want := drawTrace(t)
		r := newReplay(tr)
		r.advance(len(tr.changes))
		got, err := r.image(All, 0)
		if err != nil {
			t.Fatal(err)
		}
		equalFiles(t, All, got, want)
	})
}

// What is synced, name and all, is there in every mode.
func TestSyncedSurvives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr, want := drawTrace(t)
		// Writing every page again keeps earlier failed syncs from mattering.
		for _, name := range slices.Sorted(maps.Keys(want)) {
			inode := tr.names[name]
			tr.add(Change{Kind: Written, File: name, Data: bytes.Clone(want[name]), inode: inode})
			tr.add(Change{Kind: Synced, File: name, inode: inode})
		}
		tr.add(Change{Kind: DirSynced, File: "."})
		r := newReplay(tr)
		r.advance(len(tr.changes))
		for _, mode := range Modes() {
			got, err := r.image(mode, rapid.Uint64().Draw(t, "seed"))
			if err != nil {
				t.Fatal(err)
			}
			equalFiles(t, mode, got, want)
		}
	})
}

// In every mode each byte is one that the file held at that offset at some
// time, or zero, or appended; and images do not disturb the replay.
func TestImagesAreOfThePast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr, _ := drawTrace(t)
		r := newReplay(tr)
		r.advance(len(tr.changes))
		mode := rapid.SampledFrom([]Mode{None, Prefix, Subset, Torn, Length, DirLost}).Draw(t, "mode")
		seed := rapid.Uint64().Draw(t, "seed")
		first, err := r.image(mode, seed)
		if err != nil {
			t.Fatal(err)
		}
		for name, content := range first {
			past(t, tr, name, content)
		}
		second, err := r.image(mode, seed)
		if err != nil {
			t.Fatal(err)
		}
		equalFiles(t, mode, second, first)
	})
}

func past(t *rapid.T, tr *trace, name string, content []byte) {
	for i, b := range content {
		ok := b == 0
		for _, c := range tr.changes {
			at := int64(i) - c.Offset
			ok = ok || c.Kind == Written && c.File == name && at >= 0 && at < int64(len(c.Data)) && c.Data[at] == b
		}
		if !ok {
			t.Fatalf("%s: byte %d is %d, which was never there", name, i, b)
		}
	}
}

func equalFiles(t *rapid.T, mode Mode, got, want map[string][]byte) {
	if !maps.EqualFunc(got, want, bytes.Equal) {
		t.Fatalf("%v: got %v, want %v", mode, sizes(got), sizes(want))
	}
}

func sizes(files map[string][]byte) string {
	var s string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		s += fmt.Sprintf("%s(%d) ", name, len(files[name]))
	}
	return s
}
