//go:build !linux

package command

// FirstMain reports false: on this system no program is process 1 of a container.
func FirstMain() (code int, was bool) { return 0, false }
