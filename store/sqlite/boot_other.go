//go:build !linux

package sqlite

// bootName cannot tell on this system.
func bootName() string { return "" }
