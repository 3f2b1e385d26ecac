package store

import (
	"crypto/rand"
	"encoding/binary"
	"sync"
	"time"

	"github.com/nixie-go/nixie"
)

// IDs makes IDs. The zero value is ready; it is safe for concurrent use.
type IDs struct {
	mu     sync.Mutex
	random [1024]byte
	unused int
	tick   uint64 // milliseconds since 1970 and a 12 bit counter within one
}

// New makes an ID for the given moment. The IDs of one source strictly grow,
// also when the clock goes back.
func (s *IDs) New(now time.Time) nixie.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unused < 8 {
		_, _ = rand.Read(s.random[:]) // crypto/rand never fails since Go 1.24
		s.unused = len(s.random)
	}
	s.unused -= 8
	tick := uint64(max(now.UnixMilli(), 0)) << 12
	s.tick = max(tick, s.tick+1)

	var id nixie.ID
	copy(id[8:], s.random[s.unused:s.unused+8])
	binary.BigEndian.PutUint64(id[:8], s.tick>>12<<16|s.tick&0xfff)
	id[6] |= 0x70
	id[8] = id[8]&0x3f | 0x80
	return id
}
