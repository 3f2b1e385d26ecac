package sqlite

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// bootName identifies the boot of the machine; empty when the system does not tell.
func bootName() string {
	name, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return string(name)
}

// systemUptime returns the time since the boot, with the time in which the machine slept, and the
// name of the boot. Containers may count from different moments, and then have different names.
func systemUptime() (uptime func() time.Duration, boot string) {
	boot = strings.TrimSpace(bootName())
	space, err := os.Readlink("/proc/self/ns/time")
	var now unix.Timespec
	if boot == "" || unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return processUptime()
	}
	if err == nil {
		boot += " " + space
	}
	return func() time.Duration {
		var now unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) // it could a moment ago
		return time.Duration(now.Nano())
	}, boot
}
