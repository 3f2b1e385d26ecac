package sqlite

import (
	"errors"
	"testing"

	"zombiezen.com/go/sqlite"
)

// TestOneReaderStaysWarm lends a connection again and again: alternately each of them
// would fill a cache of its own, and each of them costs a reading of the schema.
func TestOneReaderStaysWarm(t *testing.T) {
	opened := 0
	p := newPool(3, func() (conn, error) {
		if opened++; opened == 2 {
			return conn{}, errors.New("no")
		}
		return conn{new(sqlite.Conn)}, nil
	})
	take := func() (conn, error) {
		<-p.free
		return p.take()
	}
	lend := func() conn {
		c, err := take()
		if err != nil {
			t.Fatal(err)
		}
		return c
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
	if opened != 1 {
		t.Errorf("%d connections were opened, and one at a time was needed", opened)
	}
	held := lend()
	if _, err := take(); err == nil {
		t.Error("a connection was lent that could not be opened")
	}
	p.put(held)
	if a, b, c := lend(), lend(), lend(); a == b || b == c || a == c {
		t.Error("a connection was lent twice")
	}
}
