package testservers

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/fstest"
)

// machine is a false machine with these files; those on the path are named by
// their last element.
func machine(env map[string]string, onPath string, files ...string) Machine {
	fsys := fstest.MapFS{}
	for _, f := range files {
		fsys[f] = &fstest.MapFile{}
	}
	return Machine{
		Root: fsys, Home: "/house/ann",
		Env: func(name string) string { return env[name] },
		Program: func(name string) (string, error) {
			if strings.Contains(" "+onPath+" ", " "+name+" ") {
				return "/path/" + name, nil
			}
			return "", errors.New("not on the path")
		},
		Ask: func(_ context.Context, file, arg string) string {
			return file + " says to " + arg + " 15.8 (Distribution)"
		},
	}
}

func TestFind(t *testing.T) {
	const jar = "house/ann/.m2/repository/org/apache/kafka/kafka_2.13/"
	for _, tc := range []struct {
		name string
		m    Machine
		want string // a line that is there
		miss bool   // whether that one is missing
	}{
		{"nothing", machine(nil, ""), "PostgreSQL: missing, so store/postgres is not tested on it; make test-servers installs it", true},
		{"on the path", machine(nil, "postgres"), "PostgreSQL: found 15.8", false},
		{"not on the path", machine(nil, "", "usr/lib/postgresql/15/bin/postgres"), "PostgreSQL: found 15.8", false},
		{"given", machine(map[string]string{"NIXIE_TEST_REDIS": "redis://x"}, ""), "Redis: given by NIXIE_TEST_REDIS", false},
		{"no version", machine(nil, "rabbitmq-server"), "RabbitMQ: found", false},
		{"archive", machine(nil, "java mvn", jar+"4.1.9/kafka_2.13-4.1.9.jar", jar+"4.1.10/kafka_2.13-4.1.10.jar"), "Kafka: found 4.1.10",
			false},
		{"newest", machine(nil, "java mvn", jar+"4.1.9/kafka_2.13-4.1.9.jar", jar+"4.4.0/kafka_2.13-4.4.0.jar"),
			"newest Kafka: found 4.4.0", false},
		{"archive without java", machine(nil, "mvn", jar+"4.1.9/kafka_2.13-4.1.9.jar"),
			"Kafka: missing, so broker/kafka is tested on a double only; make test-servers installs it", true},
		{"archive without Maven", machine(nil, "java", jar+"4.1.9/kafka_2.13-4.1.9.jar"),
			"Kafka: missing, so broker/kafka is tested on a double only; make test-servers installs it", true},
		{"compiler", machine(nil, "gcc"), "C compiler: found 15.8", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var lines []string
			for _, s := range Find(t.Context(), tc.m) {
				if s.String() == tc.want && s.Found() == !tc.miss {
					return
				}
				lines = append(lines, s.String())
			}
			t.Errorf("want %q, got\n%s", tc.want, strings.Join(lines, "\n"))
		})
	}
}

func TestNewestFile(t *testing.T) {
	m := machine(nil, "", "usr/lib/postgresql/9/bin/postgres", "usr/lib/postgresql/15/bin/postgres", "usr/lib/postgresql/11/bin/postgres")
	for _, s := range Find(t.Context(), m) {
		if s.Name == "PostgreSQL" && s.File != "/usr/lib/postgresql/15/bin/postgres" {
			t.Errorf("took %s", s.File)
		}
	}
}

// TestThisMachine checks that looking at a real machine ends and says a line
// for each.
func TestThisMachine(t *testing.T) {
	found := Find(t.Context(), This())
	if len(found) != len(servers) {
		t.Fatalf("%d lines for %d servers", len(found), len(servers))
	}
	for _, s := range found {
		t.Log(s)
	}
}
