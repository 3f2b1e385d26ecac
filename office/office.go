// Package office is everything an operator can do: look at letters, messages
// and queues, understand why messages died, send them on their way again,
// discard them, and check the store. The command line, the API and the console
// are faces of it.
//
// The views, such as [LetterView], are what these faces print as JSON. In them
// every field is always there: an unknown moment is null, an empty text is "",
// an empty list is []. Moments are RFC 3339 in UTC. Names never change within a
// major version.
package office

import (
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// Config of an office.
type Config struct {
	Store store.Store      // required
	Actor string           // who does what is done; required for changes
	Clock func() time.Time // default time.Now
}

// Office is safe for concurrent use.
type Office struct {
	store store.Store
	actor string
	clock func() time.Time
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
		c.Clock = time.Now
	}
	return &Office{c.Store, c.Actor, c.Clock}, nil
}
