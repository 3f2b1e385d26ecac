//go:build !unix

package itemfile

import "os"

// nonblock is not needed where pipes are no files.
const nonblock = 0

// syncFolder does nothing where folders cannot be synced.
func syncFolder(*os.File) error { return nil }
