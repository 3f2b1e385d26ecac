package command

// ring keeps the last limit bytes written to it.
type ring struct {
	limit int
	data  []byte // grows to limit; then it is a ring that begins at start
	start int
	total int64
}

func (r *ring) write(p []byte) {
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
	return Tail{Data: data, Dropped: r.total - int64(len(data))}
}
