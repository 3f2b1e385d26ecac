package sqlite

import "os"

// bootName identifies the boot of the machine; empty when the system does not tell.
func bootName() string {
	name, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return string(name)
}
