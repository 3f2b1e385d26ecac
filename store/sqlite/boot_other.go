//go:build !linux

package sqlite

import "time"

// bootName cannot tell on this system.
func bootName() string { return "" }

func systemUptime() (uptime func() time.Duration, boot string) { return processUptime() }
