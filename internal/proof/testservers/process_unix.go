//go:build unix

package testservers

import (
	"os/exec"
	"syscall"
)

// account names the user that a server runs as.
type account = syscall.Credential

// detach gives a command a process group of its own, and another user if there is one.
func detach(cmd *exec.Cmd, who *account) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who, Setpgid: true}
}
