package broker

import (
	"context"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
)

// Config of a source. Zero fields mean the default, −1 none.
type Config struct {
	Driver Driver // required

	Queue string          // what messages and letters say is their queue; default the channel of the record
	Order ProcessingOrder // default [ProcessByKey]

	// Letters names the channel that takes letters, {source} standing for the one
	// that the record came from; usually [DefaultLetters]. Office takes them into
	// the dead letter office of a store. At least one of them is needed; with both
	// a record is done with when both have its letter.
	Letters string
	Office  Adopter
	Actor   string // for the audit of the office; default the system's name

	// Park keeps what is to be retried in ParkIn, a queue of a store, so that its
	// place in the channel is free meanwhile; [Parked] makes that queue a source.
	// Without it records that wait for a retry are put on the stages that the driver
	// has, the first that takes as long as they are to wait; else they stay in hand.
	Park   nixie.Enqueuer
	ParkIn string

	MaxInHand int   // most records that are not done with; default [DefaultInHand]
	MaxBytes  int64 // of keys, values and headers among them; default [DefaultBytes]; what one call brings may go over it

	Name  string           // owner of the leases; default the system's name
	Clock func() time.Time // default time.Now
}

// Office takes letters in: the part of a store's dead letters that does.
type Adopter interface {
	Bury(ctx context.Context, letters []nixie.Letter, actor, reason string) ([]nixie.Receipt, []error)
}

// Bounds of a source.
const (
	DefaultInHand = 10_000
	DefaultBytes  = 32 << 20
	maxInHand     = 1_000_000
)

func (c Config) withDefaults() (Config, error) {
	if c.Driver == nil {
		return c, nixie.Errorf(nixie.CodeInvalid, "source has no driver: set Driver")
	}
	system := c.Driver.Features().System
	if c.Order == "" {
		c.Order = ProcessByKey
	}
	if c.Actor == "" {
		c.Actor = system
	}
	if c.Name == "" {
		c.Name = system
	}
	if c.MaxInHand == 0 {
		c.MaxInHand = DefaultInHand
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = DefaultBytes
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	return c, c.check()
}

func (c *Config) check() error {
	f := c.Driver.Features()
	switch {
	case !slices.Contains(ProcessingOrders(), c.Order):
		return nixie.Errorf(nixie.CodeInvalid, "order is %q: give one of %q", c.Order, ProcessingOrders())
	case c.Letters == "" && c.Office == nil:
		return nixie.Errorf(nixie.CodeInvalid, "letters have no place: set Letters to a channel (%s for example), or Office to a store", DefaultLetters)
	case (c.Park == nil) != (c.ParkIn == ""):
		return nixie.Errorf(nixie.CodeInvalid, "park and its queue belong together: set both Park and ParkIn, or none")
	case c.Park != nil && len(f.Stages) > 0:
		return nixie.Errorf(nixie.CodeInvalid, "retries have two places to wait: leave out the stages of the driver, or Park and ParkIn")
	case c.Park == nil && !f.Held && f.MaxDelay == 0 && len(f.Stages) == 0:
		return nixie.Errorf(nixie.CodeInvalid, "retries have no place to wait: %s cannot keep a record back, and its records cannot wait in hand; set Park and ParkIn to a store", f.System)
	case c.MaxInHand < 1 || c.MaxInHand > maxInHand:
		return nixie.Errorf(nixie.CodeInvalid, "most in hand is %d: give one from 1 to %d", c.MaxInHand, maxInHand)
	case c.MaxBytes < 1:
		return nixie.Errorf(nixie.CodeInvalid, "most bytes is %d: give a positive number", c.MaxBytes)
	}
	for _, name := range [...]struct{ what, value string }{{"queue", c.Queue}, {"queue to park in", c.ParkIn}, {"name", c.Name}, {"actor", c.Actor}} {
		if err := nixie.CheckName(name.what, name.value); err != nil {
			return err
		}
	}
	return CheckChannel("channel of letters", c.Letters)
}
