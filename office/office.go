// Package office offers everything that an operator can do. It lists letters, messages and queues,
// groups letters by cause, redrives or discards them, and checks the store. The command line prints
// its answers.
//
// Views, such as [LetterView], have a JSON form. A view always has all its fields: an unknown time
// is null, an empty text is "", an empty list is []. Times are RFC 3339 in UTC. Names never change
// within a major version.
package office

import (
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// Config of an office.
type Config struct {
	Store store.Store      // required
	Actor string           // the operator or program that acts, for the audit; required for changes
	Clock func() time.Time // default time.Now
}

// Office is safe for concurrent use.
type Office struct {
	store store.Store
	actor string
	clock func() time.Time

	wording Wording
	looked  *lookedAt // shared by all wordings
}

// New opens an office over a store. Errors are of [nixie.CodeInvalid].
func New(c Config) (*Office, error) {
	if c.Store == nil {
		return nil, nixie.Errorf(nixie.CodeInvalid, "office has no store")
	}
	if err := nixie.CheckName("actor", c.Actor); err != nil {
		return nil, err
	}
	if c.Clock == nil {
		c.Clock = time.Now //nolint:forbidigo // the default
	}
	return &Office{store: c.Store, actor: c.Actor, clock: c.Clock, looked: &lookedAt{}}, nil
}
