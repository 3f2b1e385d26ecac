package app

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
)

// handleDemo does the work of the shop. A message fares the same each time, but for failures that
// pass: those depend on the attempt.
func handleDemo(ctx context.Context, d *nixie.Delivery) error {
	luck := crc32.ChecksumIEEE(d.ID[:]) % 100
	select {
	case <-time.After(time.Duration(50+5*luck) * time.Millisecond):
	case <-ctx.Done():
		return ctx.Err()
	}
	order := d.Key[strings.LastIndexByte(d.Key, '-')+1:]
	switch {
	case bytes.Contains(d.Body, []byte(unknownCurrency)):
		err := fmt.Errorf("order %s: unknown currency %q", order, unknownCurrency)
		return nixie.WithReason(nixie.Permanent(err), nixie.ReasonValidation)
	case d.Queue == demoEmails && d.Redrives > 0 && luck < 5:
		return nixie.WithReason(fmt.Errorf("smtp: 421 4.7.0 too many messages for order %s, try again later", order), nixie.ReasonThrottled)
	case luck == 1:
		return nixie.WithReason(fmt.Errorf("order %s: no answer from %s within 2s", order, d.Queue), nixie.ReasonTimeout)
	case luck < 15 && d.Attempts == 1:
		return nixie.WithReason(fmt.Errorf("order %s: connection reset by peer", order), nixie.ReasonTransportUnavailable)
	}
	return nil
}
