package lifecycle

// Goes says who of an ordered stream may be handed out. Strict is its order, leased that one
// of it is out, and blocked that a letter ahead of the first holds up all behind it; the first
// is due at a moment. Head is that the first may go once it is due; passing is that one that
// may pass the first goes, if there is one: it has to wait again once the first can go. In a
// relaxed order the first is whoever is due first, so nobody passes it.
func Goes(strict, leased, blocked bool, due, now int64) (head, passing bool) {
	if leased {
		return false, false
	}
	return !blocked, strict && (blocked || due > now)
}
