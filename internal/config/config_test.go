package config_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/nixie-go/nixie/internal/command"
)

// No command inherits the variables that configure Nixie: they may hold a password.
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
