//go:build !unix

package sqlite

import "math"

// freeBytes cannot tell on this system.
func freeBytes(string) (int64, error) { return math.MaxInt64, nil }
