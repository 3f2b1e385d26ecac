package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Called returns how a person calls the program whose argument 0 is given: by its name alone if the
// path of commands leads to it. What go run made is gone when it can be typed, so it is nixie.
func Called(program string) string {
	if strings.Contains(program, "go-build") {
		return "nixie"
	}
	name := filepath.Base(program)
	if found, err := exec.LookPath(name); err == nil && sameFile(found, program) {
		return name
	}
	return program
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	other, failed := os.Stat(b)
	return err == nil && failed == nil && os.SameFile(one, other)
}
