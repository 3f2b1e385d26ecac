package arch

import (
	"os/exec"
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
