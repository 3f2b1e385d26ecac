package broker

import (
	"context"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
)

// Config holds the settings of a source. A zero field takes the default, −1 means none.
type Config struct {
	Driver Driver // required

	Queue string          // queue of messages and letters; default the channel of the record
	Order ProcessingOrder // default [ProcessByKey]

	// Letters names the channel that takes letters. {source} stands for the channel that the record
	// came from; [DefaultLetters] is the usual name. Office takes letters into the dead letter
	// office of a store. Set at least one of them. With both, a record is done when both have its
	// letter.
	Letters string
	Office  Adopter
	Actor   string // in the audit log of the office; default the system's name

	// Park moves retries into the queue ParkIn of a store, so that the records behind them in the
	// channel can go on. [Parked] makes a source of that queue. Without Park a retry waits on the
	// first stage of the driver that is long enough; without stages it waits in hand.
	Park   nixie.Enqueuer
	ParkIn string

	// Then takes the messages that follow settlements, a store for example, before their record is
	// acknowledged. Without it they are published to the channel that is named like their queue.
	Then nixie.Enqueuer

	Limits Limits // of the handler and its policy, with which [Source.Check] compares the settings of the broker

	MaxInHand int   // most records in hand; default [DefaultInHand]
	MaxBytes  int64 // most bytes of keys, values and headers in hand; one call of Receive may exceed it; default [DefaultBytes]

	Name  string           // owner of the leases; default the system's name
	Clock func() time.Time // default time.Now
}

// Adopter takes letters into a dead letter office, as a store does.
type Adopter interface {
	Adopt(ctx context.Context, letters []nixie.Letter, actor, reason string) ([]nixie.Receipt, []error)
}

// Limits of a source.
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
		return nixie.Errorf(nixie.CodeInvalid,
			"no channel and no store takes letters: set Letters to a channel (%s for example), or Office to a store", DefaultLetters)
	case (c.Park == nil) != (c.ParkIn == ""):
		return nixie.Errorf(nixie.CodeInvalid, "park and its queue belong together: set both Park and ParkIn, or neither")
	case c.Park != nil && len(f.Stages) > 0:
		return nixie.Errorf(nixie.CodeInvalid,
			"retries would wait both on stages and in a store: remove the stages of the driver, or Park and ParkIn")
	case c.MaxInHand < 1 || c.MaxInHand > maxInHand:
		return nixie.Errorf(nixie.CodeInvalid, "most in hand is %d: give one from 1 to %d", c.MaxInHand, maxInHand)
	case c.MaxBytes < 1:
		return nixie.Errorf(nixie.CodeInvalid, "most bytes is %d: give a positive number", c.MaxBytes)
	}
	for _, name := range [...]struct{ what, value string }{{"queue", c.Queue}, {"queue to park in", c.ParkIn}, {"name", c.Name},
		{"actor", c.Actor}} {
		if err := nixie.CheckName(name.what, name.value); err != nil {
			return err
		}
	}
	return CheckChannel("channel of letters", c.Letters)
}
