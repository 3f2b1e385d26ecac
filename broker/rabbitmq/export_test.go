package rabbitmq

// Crash ends what a driver does at once. Cut then ends its connections without giving back what is
// in hand, and returns how many records it had handed out.
func (d *Driver) Crash() (cut func() int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.hand
	d.over = true
	return func() int {
		d.Publisher.Close()
		n := h.size()
		_ = h.conn.Close()
		return n
	}
}

// Break ends the connection of a driver, as a server or a network does.
func (d *Driver) Break() {
	d.mu.Lock()
	h := d.hand
	d.mu.Unlock()
	_ = h.conn.Close()
}
