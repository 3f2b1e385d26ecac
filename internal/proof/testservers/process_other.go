//go:build !unix

package testservers

import "os/exec"

// account names the user that a server runs as; here it is always the user of the tests.
type account struct{ Uid, Gid uint32 }

func detach(*exec.Cmd, *account) {}
