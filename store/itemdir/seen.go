package itemdir

import (
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/itemfile"
)

// One question of an operator is several calls: a number by status, others by reason, the queues.
// So a listing opens only the files that have changed since the last one, and a count reads none
// that the last count has read.

// mark tells one content of a file from another. The zero mark is of none.
type mark struct{ size, written int64 }

// settling bounds how coarse the times of a file system are: a file that was written within it
// before it was read may change again without another time.
const settling = 2 * time.Second

// markOf makes the mark of a file that was read now.
func markOf(size int, written, now time.Time) mark {
	if now.Sub(written) < settling {
		return mark{}
	}
	return mark{int64(size), written.UnixNano()}
}

// holds reports whether a file still is as it was.
func (m mark) holds(in *itemfile.Folder, name string) bool {
	if m == (mark{}) {
		return false
	}
	size, written, err := in.Stat(name)
	return err == nil && m == mark{size, written.UnixNano()}
}

func byFile(heads []head) map[string]*head {
	by := make(map[string]*head, len(heads))
	for i := range heads {
		by[heads[i].file()] = &heads[i]
	}
	return by
}

// counted is a letter that a count has read, without what a count does not look at.
type counted struct {
	mark   mark
	letter nixie.Letter
}

// counts has what one count has read, by file. It takes no more than mostCounted.
type counts map[string]counted

// mostCounted limits the letters that are kept between counts, about 1 KiB each.
const mostCounted = 50_000

func (c counts) add(h *head, l *nixie.Letter) {
	if h.mark == (mark{}) || len(c) >= mostCounted {
		return
	}
	light := *l
	light.History, light.Artifacts, light.Message.Body, light.Message.Headers = nil, nil, nil, nil
	c[h.file()] = counted{h.mark, light}
}

// keep keeps what a count has read for the next one.
func (s *Store) keep(read counts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counted = read
}

// known returns what the last count has read.
func (s *Store) known() counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counted
}

// letter returns the letter of an item as the last count read it, if the file still is as it was.
func (c counts) letter(h *head) (l nixie.Letter, there bool) {
	known, there := c[h.file()]
	if !there || known.mark != h.mark {
		return l, false
	}
	return known.letter, true
}

// folders are open while a listing reads files in them. A list that cannot be opened has none.
type folders map[*list]*itemfile.Folder

func (f folders) open(in *itemfile.Dir, of *list) {
	if _, known := f[of]; !known {
		f[of], _ = in.OpenFolder(of.path)
	}
}

func (f folders) close() {
	for _, opened := range f {
		if opened != nil {
			_ = opened.Close() // it was only read
		}
	}
}
