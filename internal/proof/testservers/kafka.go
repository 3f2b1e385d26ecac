package testservers

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Kafka is a broker for the tests of one process: one node, private, on free ports
// and in a folder of its own, and gone when the process is.
type Kafka struct {
	Seed string // host and port

	version string // another one than the usual; empty: that
	keeper
	class    string   // path of its archives
	settings []string // in addition to the usual ones
}

// kafkaPatience bounds the making and the starting of a broker.
const kafkaPatience = 2 * time.Minute

// kafkaArchives is the list that Maven finds the archives by.
//
//go:embed kafka/pom.xml
var kafkaArchives []byte

// WithKafka runs the tests of a package, m.Run, with a broker of their own and
// returns their exit code. Without one the tests say so and are skipped.
func WithKafka(run func() int, into *Kafka) int { return with(run, "Kafka", kafkaPatience, into) }

// OwnKafka starts one more broker, for a test that is rough with it, with settings
// in addition to the usual ones: CLIENT, OTHER and FOLDER stand for what those are in them. The
// test is skipped, or fails, where there is none.
func OwnKafka(t testing.TB, settings ...string) *Kafka {
	t.Helper()
	k := &Kafka{settings: settings}
	own(t, kafkaPatience, k, k.start)
	return k
}

// NewestKafka starts a broker of the newest version, whose share groups write dead letters, with
// settings as of [OwnKafka]. It does so also where another broker is given. The test is skipped, or
// fails, where there is none.
func NewestKafka(t testing.TB, settings ...string) *Kafka {
	t.Helper()
	_, rest, _ := strings.Cut(string(kafkaArchives), "<kafka.newest>")
	k := &Kafka{settings: settings}
	k.version, _, _ = strings.Cut(rest, "<")
	own(t, kafkaPatience, k, k.begin)
	return k
}

// MakeKafka starts a broker, or uses the one that is given. It runs until Stop, or
// the process, ends.
func MakeKafka(ctx context.Context) (*Kafka, error) {
	ctx, stop := context.WithTimeout(ctx, kafkaPatience)
	defer stop()
	k := &Kafka{}
	return k, k.start(ctx, This())
}

func (k *Kafka) start(ctx context.Context, m Machine) error {
	if given := m.Env("NIXIE_TEST_KAFKA"); given != "" {
		k.Seed = given
		return nil
	}
	return k.begin(ctx, m)
}

// begin starts the broker.
func (k *Kafka) begin(ctx context.Context, m Machine) error {
	name := "Kafka"
	if k.version != "" {
		name = newestKafka
	}
	for _, s := range Find(ctx, m) {
		if s.Name == name && s.File == "" {
			return errors.New(s.String())
		}
	}
	var err error
	if k.folder, err = os.MkdirTemp(fastFolder(), "nixie-kafka-"); err != nil {
		return err
	}
	if err := k.prepare(ctx); err != nil {
		return errors.Join(err, os.RemoveAll(k.folder))
	}
	return k.launch(ctx)
}

// prepare finds the archives and writes the settings.
func (k *Kafka) prepare(ctx context.Context) error {
	project, list := filepath.Join(k.folder, "pom.xml"), filepath.Join(k.folder, "class.path")
	if err := os.WriteFile(project, kafkaArchives, 0o600); err != nil {
		return err
	}
	ask := []string{"-o", "-B", "-q", "-f", project, "dependency:build-classpath", "-Dmdep.outputFile=" + list}
	if k.version != "" {
		ask = append(ask, "-Dkafka.version="+k.version)
	}
	out, err := exec.CommandContext(ctx, "mvn", ask...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("Kafka: Maven does not know its archives (make test-servers fetches them): %w: %s", err, out)
	}
	path, err := os.ReadFile(list)
	if err != nil {
		return err
	}
	k.class = strings.TrimSpace(string(path))
	client, controller, err := freePorts()
	if err != nil {
		return err
	}
	k.Seed = client
	return os.WriteFile(filepath.Join(k.folder, "server.properties"), []byte(strings.NewReplacer(
		"CLIENT", client, "OTHER", controller, "FOLDER", k.folder).Replace(kafkaSettings+strings.Join(k.settings, "\n"))), 0o600)
}

const kafkaSettings = `process.roles=broker,controller
node.id=1
controller.quorum.voters=1@OTHER
listeners=PLAINTEXT://CLIENT,CONTROLLER://OTHER
advertised.listeners=PLAINTEXT://CLIENT
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs=FOLDER/data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
auto.create.topics.enable=false
log.cleaner.enable=false
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=500
`

// runKafka starts a broker in its folder, as a part of scripts whose first argument
// is that and whose second is the path of the archives.
const runKafka = `java -Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "$2" kafka.Kafka server.properties \
	>>server.log 2>&1 </dev/null & echo $! >pid`

// launch makes the files of the broker and starts it. It ends when the standard
// input of its keeper does: however the tests end, nothing stays behind.
func (k *Kafka) launch(ctx context.Context) error {
	const script = `cd "$1" &&
java -Xmx128m -XX:TieredStopAtLevel=1 -cp "$2" kafka.tools.StorageTool \
	format -t AAAAAAAAAAAAAAAAAAAAAQ -c server.properties >format.log 2>&1 ||
{ cat format.log; exit 1; }
` + runKafka + `
cat >/dev/null
kill -9 $(cat pid); cd / && rm -rf "$1"`
	if err := k.run(k.script(script)); err != nil {
		return err
	}
	if err := k.listens(ctx); err != nil {
		return errors.Join(err, k.Stop())
	}
	return nil
}

func (k *Kafka) script(text string) *exec.Cmd {
	cmd := exec.CommandContext(context.Background(), "sh", "-c", text, "sh", k.folder, k.class) // it ends by its leash
	cmd.Dir = k.folder
	detach(cmd, nil)
	return cmd
}

// listens waits until the broker does.
func (k *Kafka) listens(ctx context.Context) error {
	return k.until(ctx, "Kafka", func(ctx context.Context) bool {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", k.Seed)
		return err == nil && conn.Close() == nil
	})
}

// Kill ends the broker without a goodbye, and starts it again.
func (k *Kafka) Kill(ctx context.Context) error {
	if out, err := k.script(`kill -9 $(cat "$1/pid")`).CombinedOutput(); err != nil {
		return fmt.Errorf("Kafka was not killed: %w: %s", err, out)
	}
	if err := leaves(ctx, k.Seed); err != nil {
		return fmt.Errorf("Kafka did not end in time: %w", err)
	}
	if out, err := k.script(`cd "$1"; ` + runKafka).CombinedOutput(); err != nil {
		return fmt.Errorf("Kafka did not start again: %w: %s", err, out)
	}
	return k.listens(ctx)
}
