package store

import "time"

// Health describes the state of a store.
type Health struct {
	Endpoint    string    // location as a URL without secrets
	Engine      string    // name and version of the database
	Schema      int       // version of the schema in the store
	KnownSchema int       // newest version that this program knows
	Durability  []Setting // settings on which the durability of commits depends
	Size        int64     // bytes
	Free        int64     // bytes that can still be written
	Reserve     int64     // free bytes kept for work under way; −1: none
	Owners      []Owner   // holders of leases
	OldestLease time.Time // earliest end of a lease; zero without one
	Now         time.Time // by the clock of the store's machine
	Latest      time.Time // newest moment written to it

	// Ahead counts how far the store's own clock is ahead of that of its machine, which was set
	// back. Until Caught it goes slower: what waits takes up to a ninth longer. 0 is not ahead.
	Ahead  time.Duration
	Caught time.Time
}

// Setting is one setting of the database with the value that it should have.
type Setting struct{ Name, Value, Want string }

// Owner is a process that holds, or held, leases.
type Owner struct {
	Name      string
	StartedAt time.Time
	Alive     bool // false: it ended and left its leases
	Leases    int64
}
