package kafka

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/nixie-go/nixie/broker"
)

// settings reads the settings of a topic that matter to us. A client that may not read them gets
// none.
func (p *Publisher) settings(c *broker.Channel, list []kadm.Config) {
	for _, s := range list {
		text := s.MaybeValue()
		n, err := strconv.ParseInt(text, 10, 64)
		number := err == nil
		switch {
		case s.Key == "cleanup.policy":
			c.Compacted = strings.Contains(text, "compact")
		case s.Key == "max.message.bytes" && number:
			c.MaxBytes = int(min(n, math.MaxInt32))
			p.mu.Lock()
			p.limits[c.Name] = int32(c.MaxBytes)
			p.mu.Unlock()
		case s.Key == "retention.ms" && number:
			c.Retention = -1
			if n >= 0 {
				c.Retention = time.Duration(min(n, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
			}
		case s.Key == "min.insync.replicas" && number:
			c.Needed = int(n)
		}
	}
}
