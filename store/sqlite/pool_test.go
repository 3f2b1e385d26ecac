package sqlite

import (
	"testing"

	"zombiezen.com/go/sqlite"
)

// TestOneReaderStaysWarm lends a connection again and again: alternately each of them
// would fill a cache of its own.
func TestOneReaderStaysWarm(t *testing.T) {
	p := newPool(3)
	for range 3 {
		p.put(conn{new(sqlite.Conn)})
	}
	lend := func() conn {
		<-p.free
		return p.take()
	}
	first := lend()
	p.put(first)
	for range 5 {
		c := lend()
		if c != first {
			t.Fatal("another connection was lent while the last one was back")
		}
		p.put(c)
	}
	if a, b, c := lend(), lend(), lend(); a == b || b == c || a == c {
		t.Error("a connection was lent twice")
	}
}
