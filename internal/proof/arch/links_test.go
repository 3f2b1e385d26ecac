package arch

import (
	"debug/buildinfo"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestProgramsLinkWhatTheyUse lists what a program links that has the words, a worker, a store and
// one broker: no client library of another broker.
func TestProgramsLinkWhatTheyUse(t *testing.T) {
	clients := map[string]string{"broker/kafka": "github.com/twmb/franz-go", "broker/redis": "github.com/redis/go-redis/v9",
		"broker/rabbitmq": "github.com/rabbitmq/amqp091-go"}
	for broker := range clients {
		cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".", "./worker",
			"./office", "./store/sqlite", "./store/postgres", "./"+broker)
		cmd.Dir = "../../.."
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		for of, client := range clients {
			if links := strings.Contains(string(out), client+"\n"); links != (of == broker) {
				t.Errorf("a program with %s links %s: %v", broker, client, links)
			}
		}
	}
}

// TestLightBuild builds a program with each store. It links few modules, as go version -m tells,
// and asks for none of the large ones that only tests use.
func TestLightBuild(t *testing.T) {
	for example, most := range map[string]int{"hello": 12, "service": 9} {
		program := filepath.Join(t.TempDir(), example)
		cmd := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./examples/"+example)
		cmd.Dir = "../../.."
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, d := range info.Deps {
			names = append(names, d.Path)
		}
		t.Logf("%s links %d modules", example, len(names))
		if len(names) == 0 || len(names) > most {
			t.Errorf("%s links %d modules, want at most %d: %s", example, len(names), most, strings.Join(names, " "))
		}
	}
	asks, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for _, module := range []string{"github.com/chromedp", "github.com/hibiken/asynq"} {
		if strings.Contains(string(asks), module) {
			t.Errorf("go.mod asks for %s: a test that needs it starts a program of another module", module)
		}
	}
}
