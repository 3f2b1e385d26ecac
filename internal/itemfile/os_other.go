//go:build !unix

package itemfile

import "os"

// nonblock is not needed on systems where pipes are no files.
const nonblock = 0

// syncFolder does nothing on systems that cannot sync folders.
func syncFolder(*os.File) error { return nil }
