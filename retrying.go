package nixie

// Retrying reports whether the message is on its way again after a failure: it
// is queued or leased, has begun an attempt in this life and failed before.
func (m *Message) Retrying() bool {
	return (m.State == Queued || m.State == Leased) && m.Attempts > 0 && m.LastReason != ""
}
