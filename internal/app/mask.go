package app

import (
	"regexp"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/privacy"
)

// Mask hides secrets in texts; see [privacy.Mask].
type Mask = privacy.Mask

// NewMask makes the mask of this program. It hides secrets by name and form, the values of
// environment variables whose names mark secrets, and matches of the patterns.
func NewMask(patterns, environment []string) (Mask, error) {
	mask := Mask{privacy.Environment(environment), privacy.Secrets}
	for _, p := range patterns {
		re, err := regexp.Compile(p)
		if err != nil {
			return nil, nixie.Errorf(nixie.CodeInvalid, "mask %q is no regular expression: %w", p, err)
		}
		mask = append(mask, privacy.Pattern(re))
	}
	return mask, nil
}
