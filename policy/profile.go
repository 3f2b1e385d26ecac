package policy

import (
	"strings"

	"github.com/nixie-go/nixie"
)

// DefaultProfile is the profile of a [Config] that names none.
const DefaultProfile = "nixie"

// Profiles lists the names of all profiles. A profile is a set of values and
// nothing else.
func Profiles() []string { return []string{DefaultProfile} }

// profile returns the values of a profile. MaxDeliveries stays 0 where it
// follows from MaxAttempts.
func profile(name string) (Config, error) {
	switch name {
	case "", DefaultProfile:
		return Config{
			Profile:     DefaultProfile,
			MaxAttempts: DefaultMaxAttempts,
			MaxAge:      none,
			MaxRedrives: DefaultMaxRedrives,
			Backoff:     defaultBackoff(),
			OnExhausted: nixie.Bury,
		}, nil
	}
	return Config{}, nixie.Errorf(nixie.CodeInvalid, "profile is %q: choose one of %s", name, strings.Join(Profiles(), ", "))
}
