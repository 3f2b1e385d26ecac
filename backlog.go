package nixie

import "time"

// DueCounts are numbers of scheduled messages by how long it is until they are
// due: those of the first band of [DueBands], of the second, and so on; the
// last are those beyond all bands.
type DueCounts [8]int64

// DueBands are the ends of the bands of [DueCounts], each included in its own.
func DueBands() [len(DueCounts{}) - 1]time.Duration {
	return [...]time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour}
}

// DueBand is the index of the band of something due after d.
func DueBand(d time.Duration) int {
	bands := DueBands()
	for i, end := range bands {
		if d <= end {
			return i
		}
	}
	return len(bands)
}

// Admits says why the queue of that name takes no new message, nil if it does.
func (q QueueSettings) Admits(queue string) error {
	if !q.Closed {
		return nil
	}
	note := ""
	if q.ClosedNote != "" {
		note = " (" + q.ClosedNote + ")"
	}
	return Errorf(CodeConflict, "queue %s is closed to new messages%s: nixie queue resume opens it again", queue, note)
}
