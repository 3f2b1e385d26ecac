//go:build !unix

package itemfile

// nonblock is not needed where pipes are no files.
const nonblock = 0
