package docs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/broker/kafka"
	mailbox "github.com/nixie-go/nixie/broker/redis"
	"github.com/nixie-go/nixie/internal/proof/testservers"
)

const root = "../../.."

const (
	menu      = "docs/README.md"   // lists the pages
	decisions = "docs/decisions/0" // begins the names of decision records
	commands  = "docs/cli"         // begins the names of what is written from the program
)

// documents lists the documents of the repository.
func documents(t *testing.T) []string {
	t.Helper()
	fsys := os.DirFS(root)
	names, err := fs.Glob(fsys, "*.md")
	if err != nil {
		t.Fatal(err)
	}
	archived, err := fs.Glob(fsys, "internal/release/archive/*.md")
	if err != nil {
		t.Fatal(err)
	}
	names = append(names, archived...)
	err = fs.WalkDir(fsys, "docs", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && path.Ext(name) == ".md" {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestTranscripts runs what the documents show.
func TestTranscripts(t *testing.T) {
	bin := ""
	for _, name := range documents(t) {
		text := read(t, name)
		if !Transcribed(text) {
			continue
		}
		if bin == "" {
			bin = build(t)
		}
		t.Run(name, func(t *testing.T) {
			session, err := NewSession(t.TempDir(), bin)
			if err != nil {
				t.Fatal(err)
			}
			switch name {
			case onPostgres:
				session.Set("PGHOST", startPostgres(t))
			case onKafka:
				session.Set("KAFKA", startKafka(t))
			case onTopics:
				session.Set("KAFKA", startTopics(t))
			case onRedis:
				session.Set("REDIS", startRedis(t))
			case onRabbitMQ:
				session.Set("RABBITMQ", startRabbitMQ(t))
			case onJobs:
				session.Set("REDIS", startJobs(t))
			case onGo:
				readyForGo(t, session)
			}
			differ, err := session.Play(t.Context(), text)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, d := range differ {
				t.Errorf("%s: %s", name, d)
			}
		})
	}
}

// onRabbitMQ is the document whose commands talk to a server of RabbitMQ.
const onRabbitMQ = "docs/rabbitmq.md"

// startRabbitMQ starts a server whose consumer of orders rejected three messages.
func startRabbitMQ(t *testing.T) string {
	t.Helper()
	server := testservers.OwnRabbitMQ(t)
	conn, err := amqp.Dial("amqp://guest:guest@" + server.Addr + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	_, dead := ch.QueueDeclare("orders.dlq", true, false, false, false, amqp.Table{"x-queue-type": "quorum"})
	_, made := ch.QueueDeclare("orders", true, false, false, false, amqp.Table{"x-queue-type": "quorum",
		"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders.dlq"})
	if err := errors.Join(dead, made); err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		if err := ch.Publish("", "orders", true, false, amqp.Publishing{Body: fmt.Appendf(nil, `{"order":%d}`, n)}); err != nil {
			t.Fatal(err)
		}
	}
	rejected, err := ch.Consume("orders", "", false, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		d := <-rejected
		if err := d.Reject(false); err != nil {
			t.Fatal(err)
		}
	}
	for q := (amqp.Queue{}); q.Messages < 3; { // the server moves them in its own time
		if q, err = ch.QueueDeclarePassive("orders.dlq", true, false, false, false, nil); err != nil || t.Context().Err() != nil {
			t.Fatal(err, t.Context().Err())
		}
	}
	return server.Addr
}

// onJobs is the document about the dead jobs of other job queues.
const onJobs = "docs/foreign-dead-sets.md"

// startJobs starts a Redis with dead jobs of Sidekiq.
func startJobs(t *testing.T) string {
	t.Helper()
	server := testservers.OwnRedis(t)
	c := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer func() { _ = c.Close() }()
	slow := `"queue":"mails","class":"Mail","error_message":"slow","error_class":"Net::ReadTimeout"`
	for score, job := range map[float64]string{
		1777888800.5: slow + `,"args":[7],"jid":"11aa"`, 1777888801.25: slow + `,"args":[8],"jid":"22bb"`,
		1777888802: `"queue":"invoices","class":"Invoice","args":[9],"jid":"33cc","error_message":"tax is missing",` +
			`"error_class":"ArgumentError"`,
	} {
		if err := c.ZAdd(t.Context(), "dead", redis.Z{Score: score, Member: "{" + job + `,"retry_count":25}`}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	return server.Addr
}

// onPostgres is the document whose commands talk to a server.
const onPostgres = "docs/postgres.md"

// startPostgres starts a server with a role postgres that may do everything, and
// returns where it is.
func startPostgres(t *testing.T) string {
	t.Helper()
	server := testservers.OwnPostgres(t)
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	c, err := pgx.Connect(t.Context(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Exec(t.Context(), "create role postgres superuser login")
	if err := errors.Join(err, c.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	return u.Query().Get("host")
}

// onKafka is the document whose commands talk to a broker.
const onKafka = "docs/kafka.md"

// startKafka starts a broker in this process, with the topics of the document, and
// returns where it is.
func startKafka(t *testing.T) string {
	t.Helper()
	seed := testservers.FakeKafka(t, "orders", "refunds")
	client, err := kgo.NewClient(kgo.SeedBrokers(seed))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, r := range []*kgo.Record{
		{Topic: "orders", Value: []byte(`{"amount":3}`)}, {Topic: "orders", Value: []byte(`{"amount":"many"}`)},
		{Topic: "orders", Value: []byte(`{"amount":5}`)}, {Topic: "orders", Value: []byte(`{"amount":7}`)},
		{Topic: "refunds", Key: []byte("r-1"), Value: []byte("{}")},
	} {
		if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	return seed
}

// onRedis is the document whose commands talk to a server of Redis.
const onRedis = "docs/redis.md"

// startRedis starts a server with the mailbox of the document, and returns where it is.
func startRedis(t *testing.T) string {
	t.Helper()
	server := testservers.OwnRedis(t)
	to, err := mailbox.Connect(mailbox.Address{Servers: []string{server.Addr}})
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	if err := to.Create(t.Context(), "orders", nil); err != nil {
		t.Fatal(err)
	}
	var list []broker.Publication
	for _, body := range []string{`{"amount":3}`, `{"amount":"many"}`, `{"amount":5}`, `{"amount":7}`} {
		list = append(list, broker.Publication{Channel: "orders", Value: []byte(body)})
	}
	if err := errors.Join(to.Publish(t.Context(), list)()...); err != nil {
		t.Fatal(err)
	}
	return server.Addr
}

// build makes the binary that the documents talk about. It looks at every
// folder first: go test notes what a test looked at, and so runs the documents
// again when any source has changed.
func build(t *testing.T) string {
	t.Helper()
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() && (name == ".git" || name == "bin") {
			return fs.SkipDir
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(bin, "nixie"), "./cmd/nixie")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build nixie: %v\n%s", err, out)
	}
	return bin
}

// TestLinks follows every link that stays in the repository.
func TestLinks(t *testing.T) {
	fsys := os.DirFS(root)
	for _, name := range documents(t) {
		for _, link := range Links(read(t, name)) {
			if why := Broken(fsys, name, link); why != "" {
				t.Errorf("%s:%d: %s: %s", name, link.Line, link.Target, why)
			}
		}
	}
}

// TestMenu looks for pages that docs/README.md, the order of all pages, does not list.
func TestMenu(t *testing.T) {
	listed := map[string]bool{}
	for _, link := range Links(read(t, menu)) {
		listed[path.Join("docs", link.Target)] = true
	}
	for _, name := range documents(t) {
		if strings.HasPrefix(name, "docs/") && !strings.HasPrefix(name, commands+"/") && !strings.HasPrefix(name, "docs/decisions/") &&
			name != menu && !listed[name] {
			t.Errorf("%s does not list %s", menu, name)
		}
	}
}

// TestDecisions checks that the list of decision records is complete.
func TestDecisions(t *testing.T) {
	list := read(t, "docs/decisions/README.md")
	for _, name := range documents(t) {
		record := path.Base(name)
		if strings.HasPrefix(name, decisions) && !strings.Contains(list, "("+record+")") {
			t.Errorf("docs/decisions/README.md does not list %s", record)
		}
	}
}

// onTopics is the document whose commands talk to a broker with dead letters.
const onTopics = "docs/dead-letter-topics.md"

// startTopics starts a broker with the letters that the document tells of, and
// returns where it is.
func startTopics(t *testing.T) string {
	t.Helper()
	seed := testservers.FakeKafka(t, "orders", "orders.dlq", "orders-dlt", "orders.quarantine")
	to, err := kafka.Connect(kafka.Address{Seeds: []string{seed}})
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	number := func(n, bytes int) string {
		return string(binary.BigEndian.AppendUint64(nil, uint64(n))[8-bytes:])
	}
	spring := func(part, offset int, exception string) []string {
		return []string{
			"kafka_dlt-original-topic", "orders", "kafka_dlt-original-partition", number(part,
				4), "kafka_dlt-original-offset", number(offset, 8),
			"kafka_dlt-exception-fqcn", exception, "kafka_dlt-exception-message", "customer unknown",
		}
	}
	ours := func(reason, redrives string) []string {
		return []string{"x-original-topic", "orders", "x-failure-reason", "transient_max_retries", "x-nixie-reason", reason,
			"x-redrive-count", redrives}
	}
	var list []broker.Publication
	for _, l := range []struct {
		topic, key string
		headers    []string
	}{
		{"orders-dlt", "order-1", spring(2, 4711, "com.shop.OrderException")}, {"orders-dlt", "order-2",
			spring(0, 12, "com.shop.OrderException")},
		{"orders-dlt", "order-3", spring(1, 88, "java.net.SocketTimeoutException")},
		{"orders.dlq", "order-4", ours("timeout", "0")}, {"orders.dlq", "order-5", ours("handler", "0")}, {"orders.dlq", "order-6",
			ours("handler", "1")}, {"orders.dlq", "order-7", ours("handler", "3")},
	} {
		p := broker.Publication{Channel: l.topic, Key: []byte(l.key), Value: []byte(`{"order":"` + l.key + `"}`)}
		for i := 0; i < len(l.headers); i += 2 {
			p.Headers = append(p.Headers, broker.RecordHeader{Name: l.headers[i], Value: []byte(l.headers[i+1])})
		}
		list = append(list, p)
	}
	if err := errors.Join(to.Publish(t.Context(), list)()...); err != nil {
		t.Fatal(err)
	}
	return seed
}
