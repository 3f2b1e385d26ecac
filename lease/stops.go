package lease

import "github.com/nixie-go/nixie"

// MaxStops bounds the holders of a message that may vanish after they were told to stop without an
// answer between them. So a message is found that hangs whenever its holder stops.
const MaxStops = 20

// Vanished returns the patience of a message whose holder vanished, and whether that is a crash.
// The end of a holder that was told to stop costs nothing, up to [MaxStops] times.
func Vanished(p nixie.Patience, by string, told bool) (after nixie.Patience, crash bool) {
	if !told || p.Stops >= MaxStops {
		return p, true
	}
	p.Stops++
	p.Free++
	p.StoppedBy = by
	return p, false
}
