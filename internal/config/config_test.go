package config_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/nixie-go/nixie/internal/command"
)

// What Nixie is set up by no command inherits: there may be a password in it.
func TestNoCommandInheritsOurVariables(t *testing.T) {
	source, err := os.ReadFile("config.go")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`env\("(NIXIE_\w+)"\)`).FindAllSubmatch(source, -1)
	if len(names) < 5 {
		t.Fatalf("%d variables are read", len(names))
	}
	for _, name := range names {
		if left := command.NewEnvironment([]string{string(name[1]) + "=x"}).With(); len(left) > 0 {
			t.Errorf("%s is inherited", name[1])
		}
	}
}
