//go:build !unix

package testservers

import "os/exec"

// account is who a server runs as, which is always whoever runs the tests here.
type account struct{ Uid, Gid uint32 }

func apart(*exec.Cmd, *account) {}
