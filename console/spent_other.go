//go:build !linux && !darwin

package console

import "time"

// threadTime returns 0: where a thread's processor time is not known, no look waits for it.
func threadTime() time.Duration { return 0 }
