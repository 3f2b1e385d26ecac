package lifecycle

// Goes decides which messages of an ordered stream may be delivered. Its inputs:
//
//	strict   the order of the stream
//	leased   a message of the stream is leased
//	blocked  a letter before the first message blocks the stream
//	due      the moment at which the first message is due
//
// Head reports that the first message may be delivered once it is due. Passing reports that a
// message with MayPass may be delivered instead; it waits again when the first can be delivered. In
// a relaxed order the first message is the one due first, so no message passes it.
func Goes(strict, leased, blocked bool, due, now int64) (head, passing bool) {
	if leased {
		return false, false
	}
	return !blocked, strict && (blocked || due > now)
}
