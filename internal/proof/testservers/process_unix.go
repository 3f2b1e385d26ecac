//go:build unix

package testservers

import (
	"os/exec"
	"syscall"
)

// account is who a server runs as.
type account = syscall.Credential

// apart gives a command a process group of its own, as somebody else if need be.
func apart(cmd *exec.Cmd, who *account) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who, Setpgid: true}
}
