//go:build unix

package redis

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/internal/proof/testservers"
)

// Consumers and the server are killed at any moment. Each record is handled or becomes a letter,
// and what ran again was in hand at a kill.
func TestKills(t *testing.T) {
	t.Parallel()
	own := testservers.OwnRedis(t)
	proof.Run(t, "redis-kills", func(t *testing.T, seed uint64) int {
		return kills(t, newFixture(t, Address{Servers: []string{own.Addr}}), own, seed, 10)
	})
}

func kills(t *testing.T, f *fixture, own *testservers.Redis, seed uint64, points int) int {
	const records, parallel = 2_000, 8
	rng := rand.New(rand.NewPCG(seed, 18))
	f.produce(t, records, func(i int) string {
		switch {
		case i%20 == 3:
			return malformed
		case i%10 == 7:
			return flaky
		}
		return fine
	})
	const good = records - records/20
	l := newLedger()
	c := f.consume(t, l, parallel)
	ofServer, inHand := 0, 0
	for n := range points {
		l.until(t, good*(n+1)/(points+2)+rng.IntN(good/(points+2)))
		if rng.IntN(2) == 0 {
			ofServer++
			if err := own.Kill(limited(t)); err != nil {
				t.Fatal(err)
			}
			continue
		}
		inHand += f.kill(t, c)
		c = f.consume(t, l, parallel)
	}
	l.until(t, good)
	f.allDone(t)
	letters := f.distinct(t)
	c.Kill()
	what := fmt.Sprintf("seed %d: %d records, %d consumers and %d servers killed: %d handled, %d letters, %d repeats; %d were in hand",
		seed, records, points-ofServer, ofServer, l.handled(), len(letters), l.repeats(), inHand)
	t.Log(what)
	if l.handled() != good || len(letters) != records/20 || l.repeats() > inHand+ofServer*parallel {
		t.Error(what)
	}
	return points
}
