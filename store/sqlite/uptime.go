package sqlite

import (
	"fmt"
	"os"
	"time"
)

// processUptime is for systems that do not tell since when they run: it counts in this process
// only, and has a name of its own.
func processUptime() (uptime func() time.Duration, boot string) {
	start := time.Now()                                        //nolint:forbidigo // its monotonic reading counts
	since := func() time.Duration { return time.Since(start) } //nolint:forbidigo // likewise
	return since, fmt.Sprint("process ", os.Getpid(), " ", start.UnixNano())
}
