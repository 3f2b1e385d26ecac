package sqlite

import "os"

// bootName names this life of the machine; empty when nobody can tell.
func bootName() string {
	name, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return string(name)
}
