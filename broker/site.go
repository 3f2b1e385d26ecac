package broker

import (
	"fmt"
	"time"

	"github.com/nixie-go/nixie"
)

// Site tells where the channels of a broker are. Empty is unknown.
type Site struct{ Server, Database, Prefix string }

// SiteOf returns the site of a record.
func SiteOf(o *nixie.Origin) Site { return Site{o.Server, o.Database, o.Prefix} }

// Has reports whether a record can have died at this site. What is unknown fits.
func (s Site) Has(o *nixie.Origin) bool {
	return (o.Database == "" || s.Database == "" || o.Database == s.Database && o.Prefix == s.Prefix) &&
		(o.Server == "" || s.Server == "" || o.Server == s.Server)
}

// String writes the site for people.
func (s Site) String() string {
	if s.Database == "" {
		return "a server that it does not name"
	}
	text := "database " + s.Database
	if s.Prefix != "" {
		text += ", prefix " + s.Prefix + ","
	}
	if s.Server == "" {
		return text + " of a server without a name"
	}
	return text + " of server " + s.Server
}

// DeathText writes for people which death a record has: the time in milliseconds since 1970 and the
// hash of its body, as far as they are known.
func DeathText(at int64, hash []byte) string {
	text := "at a time that is not known"
	if at >= 0 {
		text = "of " + time.UnixMilli(at).UTC().Format("2006-01-02T15:04:05.000Z")
	}
	if len(hash) > 0 {
		text += fmt.Sprintf(" with a body of sha256 %.6x…", hash)
	}
	return text
}
