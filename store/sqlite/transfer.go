package sqlite

import "github.com/nixie-go/nixie/store/lifecycle"

// transfer appends a message to another queue. It gets a position there, and all rows that name the
// old position follow.
func (v *verb) transfer(h *held, to *queueRow) (int64, error) {
	if h.was.pos != 0 {
		if err := v.dissolve(h.pos); err != nil {
			return 0, err
		}
	}
	if err := v.takeOut(h); err != nil {
		return 0, err
	}
	to.last++
	to.dirty = true
	pos := to.n<<seqBits | to.last
	to.skips(pos)
	for _, query := range [...]string{
		"update message set pos = ?, own = 1 where pos = ?",
		"update failure set pos = ? where pos = ?",
		"update attachment set pos = ? where pos = ?",
	} {
		if err := v.run(query, pos, h.pos); err != nil {
			return 0, err
		}
	}
	size, err := v.number("select length(body) from message where pos = ?", pos)
	if err != nil {
		return 0, err
	}
	to.largest = max(to.largest, size)
	p := h.pendingRow
	p.pos, p.queue, p.State, p.stream, p.Rank = pos, to.n, lifecycle.Queued, 0, 0
	if err := v.join(to, &p, h.name, pos); err != nil {
		return 0, err
	}
	v.wake(to.name)
	return pos, v.insertPending(&p)
}
