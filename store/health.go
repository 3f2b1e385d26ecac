package store

import "time"

// Health is how a store is.
type Health struct {
	Place       string    // where it is, as a URL without secrets
	Engine      string    // name and version of what keeps the data
	Schema      int       // as found
	KnownSchema int       // newest that this program knows
	Durability  []Setting // what commits are promised
	Size        int64     // bytes
	Free        int64     // bytes that may still be written
	Reserve     int64     // free bytes kept for work under way; −1 none
	Owners      []Owner   // holders of leases
	OldestLease time.Time // earliest end of a lease; zero without one
	Now         time.Time // the store's time
	Latest      time.Time // newest moment written to it
}

// Setting is one setting that durability depends on.
type Setting struct{ Name, Value, Want string }

// Owner is a process that holds, or held, leases.
type Owner struct {
	Name      string
	StartedAt time.Time
	Alive     bool // false: it ended without giving its leases back
	Leases    int64
}
