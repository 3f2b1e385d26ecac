package command_test

import (
	"os/exec"
	"testing"

	"github.com/nixie-go/nixie/internal/command"
)

func TestCalled(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell is on the path")
	}
	for program, want := range map[string]string{
		"nixie": "nixie", "bin/nixie": "bin/nixie", "x/go-build1/b001/exe/nixie": "nixie", shell: "sh",
	} {
		if got := command.Called(program); got != want {
			t.Errorf("%s is called %s, want %s", program, got, want)
		}
	}
}
