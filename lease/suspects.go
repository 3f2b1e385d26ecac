package lease

// maxHalvings is enough to reduce any parallelism to one.
const maxHalvings = 31

// GroupSize returns how many suspects run together. A suspect is a message whose last holders,
// crashes in a row, have vanished. After the first crash half of the parallelism runs together,
// after the second a quarter, and at last a suspect runs alone.
func GroupSize(parallel, crashes int) int {
	return max(1, parallel>>min(max(crashes, 0), maxHalvings))
}

// AloneTwice reports whether a suspect ran alone in its last two runs, when its groups had the
// sizes of [GroupSize]. Its holder vanished in both, so the message is to blame.
func AloneTwice(parallel, crashes int) bool {
	return max(parallel, 1)>>min(max(crashes, 0), maxHalvings) == 0
}
