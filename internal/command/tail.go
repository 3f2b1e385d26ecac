package command

import "github.com/nixie-go/nixie/policy"

const (
	// headLimit limits the beginning of an output that is kept with its end: programs that print
	// a lot after an error say first what failed.
	headLimit = 8 << 10

	markRoom = 64 // bytes for the line between both ends
)

// ring keeps the last limit bytes written to it, and the first headLimit when they are not among
// those.
type ring struct {
	limit int
	head  []byte
	data  []byte // grows to limit; then it is a ring that begins at start
	start int
	total int64
}

func (r *ring) write(p []byte) {
	if r.head == nil && len(r.data)+len(p) > r.limit && r.limit > headLimit {
		r.head = append(make([]byte, 0, headLimit), r.data[:min(len(r.data), headLimit)]...)
		r.head = append(r.head, p[:min(len(p), headLimit-len(r.head))]...)
	}
	r.total += int64(len(p))
	if len(p) >= r.limit {
		r.data = append(r.data[:0], p[len(p)-r.limit:]...)
		r.start = 0
		return
	}
	if room := r.limit - len(r.data); room > 0 {
		n := min(room, len(p))
		r.data = append(r.data, p[:n]...)
		p = p[n:]
	}
	for len(p) > 0 {
		n := copy(r.data[r.start:], p)
		r.start = (r.start + n) % r.limit
		p = p[n:]
	}
}

func (r *ring) tail() Tail {
	data := r.data
	if r.start > 0 {
		data = append(append(make([]byte, 0, len(r.data)), r.data[r.start:]...), r.data[:r.start]...)
	}
	return Tail{Head: r.head, Data: data, Dropped: r.total - int64(len(data))}
}

// Kept returns both ends of the output in at most limit bytes, see [policy.JoinEnds], and the
// number of bytes left out.
func (t Tail) Kept(limit int) (data []byte, cut int64) {
	if t.Dropped == 0 && len(t.Data) <= limit {
		return t.Data, 0
	}
	first, last, room := t.Head, t.Data, limit
	if t.Dropped == 0 {
		first = last[:min(headLimit, len(last))]
	}
	if first = first[:min(len(first), limit/4)]; len(first) > 0 {
		room -= len(first) + markRoom
	}
	last = last[max(len(last)-room, 0):]
	start := t.Dropped + int64(len(t.Data)-len(last))
	first = first[:min(int64(len(first)), start)]
	return policy.JoinEnds(first, last, start-int64(len(first)))
}
