//go:build !unix

package sqlite

import "os"

// tryLock takes no lock on this system: every owner counts as alive, and its leases end by time.
func tryLock(*os.File) (bool, error) { return false, nil }

const canLock = false

func unlock(*os.File) error { return nil }
