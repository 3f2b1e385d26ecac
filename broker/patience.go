package broker

import (
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
)

// after returns patience and attempts of an item after a retry or release.
func (i *item) after(st *nixie.Settlement, now time.Time) (nixie.Patience, int) {
	d := i.delivery
	p, refund := lease.GivenBack(d.Patience, st, d.Abandoned, now)
	return p, d.Attempts - refund
}

// patience writes what policy counts besides attempts.
func (w *headerWriter) patience(p nixie.Patience) { w.text(HeaderPatience, lease.PatienceText(p)) }

// headerPatience reads what patience wrote. No record had more free deliveries than deliveries, and
// none began to fail before its time or later than now.
func headerPatience(text string, deliveries int, now time.Time) nixie.Patience {
	p, _ := lease.ReadPatience(text)
	p.Free, p.Tries, p.Stops = min(p.Free, deliveries), min(p.Tries, deliveries), min(p.Stops, deliveries)
	for _, at := range [...]*time.Time{&p.FailingSince, &p.RefusedSince} {
		switch {
		case at.After(now):
			*at = now
		case !at.IsZero():
			*at = clampTime(*at)
		}
	}
	return p
}

// goOnWith adds what a message had before it was parked.
func goOnWith(p *nixie.Patience, before nixie.Patience) {
	p.FailingSince, p.RefusedSince = earlier(p.FailingSince, before.FailingSince), earlier(p.RefusedSince, before.RefusedSince)
	p.Free, p.Tries, p.Stops = p.Free+before.Free, p.Tries+before.Tries, p.Stops+before.Stops
}

// earlier returns the earlier of two moments; zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
