package docs

import (
	"errors"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/nixie-go/nixie/internal/testservers"
)

const root = "../.."

// documents lists the documents of the repository.
func documents(t *testing.T) []string {
	t.Helper()
	fsys := os.DirFS(root)
	names, err := fs.Glob(fsys, "*.md")
	if err != nil {
		t.Fatal(err)
	}
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
			if name == onPostgres {
				session.Set("PGHOST", startPostgres(t))
			}
			if name == onKafka {
				session.Set("KAFKA", startKafka(t))
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
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders", "refunds"), kfake.BrokerConfigs(map[string]string{"group.initial.rebalance.delay.ms": "0"}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...))
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
	return cluster.ListenAddrs()[0]
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

// TestDecisions checks that the list of decision records is complete.
func TestDecisions(t *testing.T) {
	list := read(t, "docs/decisions/README.md")
	for _, name := range documents(t) {
		record := path.Base(name)
		if strings.HasPrefix(name, "docs/decisions/0") && !strings.Contains(list, "("+record+")") {
			t.Errorf("docs/decisions/README.md does not list %s", record)
		}
	}
}
