package postgres_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/proof/testservers"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/store/postgres"
	"github.com/nixie-go/nixie/store/storetest"
)

// noted claims messages that are noted as waiting.
func noted(t *testing.T, s *postgres.Store, n int) []*nixie.Delivery {
	t.Helper()
	fill(t, s, n)
	ds, err := s.Claim(t.Context(), "q", nixie.Want{Max: n, Lease: time.Minute, LogProgress: true})
	must(t, err)
	if len(ds) != n {
		t.Fatalf("%d of %d were claimed", len(ds), n)
	}
	return ds
}

// TestProgressEndsWithTheServer lets a server crash, which forgets notes that wait for no
// disk: what had waited is judged then, because it is not known that it was not begun.
func TestProgressEndsWithTheServer(t *testing.T) {
	own := testservers.OwnPostgres(t)
	clock := storetest.NewClock()
	s, err := postgres.Open(t.Context(), own.URL, postgres.Options{Clock: clock.Now})
	must(t, err)
	defer func() { must(t, s.Close()) }()
	const many = 4
	noted(t, s, many)
	fill(t, s, 1) // which is on the disk then, with what was before it
	must(t, own.Kill())
	clock.Advance(2 * time.Minute)
	var judged []*nixie.Delivery
	err = errors.New("not asked yet")
	for err != nil && t.Context().Err() == nil { // the server comes back
		judged, err = s.Claim(t.Context(), "q", nixie.Want{Max: 1})
	}
	if len(judged) != many {
		t.Errorf("%d of %d are to be judged", len(judged), many)
	}
	for _, d := range judged {
		if !d.Abandoned || d.Crashes != 1 {
			t.Errorf("message %s: abandoned %v, %d crashes", d.Key, d.Abandoned, d.Crashes)
		}
	}
	sound(t, s)
}

// TestProgressGoesWithItsLease lets leases end, and processes.
func TestProgressGoesWithItsLease(t *testing.T) {
	a, b, _, schema := pair(t)
	conn, err := pgx.Connect(t.Context(), server.URL)
	must(t, err)
	defer func() { must(t, conn.Close(t.Context())) }()
	left := func() (n int) {
		t.Helper()
		must(t, conn.QueryRow(t.Context(), "select count(*) from "+schema+".progress").Scan(&n))
		return n
	}
	ds := noted(t, a, 4)
	for _, d := range ds[:2] {
		must(t, a.LogProgress(lease.Succeeded, d))
	}
	for _, d := range []*nixie.Delivery{ds[0], ds[2]} {
		if c := settle(t, a, d, nixie.Complete); c != "" {
			t.Fatal(c)
		}
	}
	b.Beat(t.Context())
	if n := left(); n != 4 {
		t.Errorf("%d notes are left after a heartbeat of another process, of 4", n)
	}
	a.Beat(t.Context())
	if n := left(); n < 2 || n > 3 { // those of a range go together
		t.Errorf("%d notes are left for 2 leases", n)
	}
	must(t, a.Close())
	if d := one(t, b); d.ID != ds[3].ID || d.Abandoned {
		t.Errorf("message %s came, abandoned %v", d.Key, d.Abandoned)
	}
	b.Beat(t.Context())
	if n := left(); n != 0 {
		t.Errorf("%d notes are left of a process that has left", n)
	}
}
