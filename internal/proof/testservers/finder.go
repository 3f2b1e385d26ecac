package testservers

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// Server is something tests need and whether it is there.
type Server struct {
	Name    string
	Env     string // the variable that names one of your own; empty: there is none
	Given   bool   // the variable is set
	File    string // the program or archive that was found; empty: missing
	Version string // empty if it does not say
	Without string // what is not tested when it is missing
}

// Found reports whether tests can use it.
func (s Server) Found() bool { return s.Given || s.File != "" }

// String is one line for a person.
func (s Server) String() string {
	switch {
	case s.Given:
		return fmt.Sprintf("%s: given by %s", s.Name, s.Env)
	case s.File != "":
		return strings.TrimSpace(fmt.Sprintf("%s: found %s", s.Name, s.Version))
	}
	return fmt.Sprintf("%s: missing, so %s; make test-servers installs it", s.Name, s.Without)
}

// wanted holds the signs of a server.
type wanted struct {
	name, env, without string
	programs           []string // on the path, first match wins
	installed          []string // patterns below the root of the machine, newest version wins
	archives           []string // patterns below the home folder, newest version wins
	needs              []string // other programs without which it does not run
	modules            []string // folders of libraries below the root, without which it is of no use
	asks               string   // the argument to which a program says its version
}

var servers = []wanted{
	{
		name: "PostgreSQL", env: "NIXIE_TEST_POSTGRES", programs: []string{"postgres"}, asks: "--version",
		installed: []string{"usr/lib/postgresql/*/bin/postgres", "usr/pgsql-*/bin/postgres"},
		without:   "store/postgres is not tested on it",
	},
	{
		name: "PgBouncer", programs: []string{"pgbouncer"}, asks: "--version",
		installed: []string{"usr/sbin/pgbouncer"},
		without:   "store/postgres is not tested behind a pooler",
	},
	{
		name: "Redis", env: "NIXIE_TEST_REDIS", programs: []string{"redis-server"}, asks: "--version",
		installed: []string{"usr/bin/redis-server"},
		without:   "broker/redis is not tested",
	},
	{
		name: "RabbitMQ", env: "NIXIE_TEST_RABBITMQ", programs: []string{"rabbitmq-server"},
		installed: []string{"usr/sbin/rabbitmq-server", "usr/lib/rabbitmq/bin/rabbitmq-server"},
		without:   "broker/rabbitmq is not tested on it",
	},
	{
		name: "Kafka", env: "NIXIE_TEST_KAFKA", needs: []string{"java", "mvn"},
		archives: []string{".m2/repository/org/apache/kafka/kafka_2.13/4.1.*/kafka_2.13-*.jar"},
		without:  "broker/kafka is tested on a double only",
	},
	{
		name: newestKafka, needs: []string{"java", "mvn"},
		archives: []string{".m2/repository/org/apache/kafka/kafka_2.13/4.4.*/kafka_2.13-*.jar"},
		without:  "dead letters of share groups are not tested",
	},
	{
		name: PythonClient, installed: []string{"usr/lib/python3/dist-packages/redis/__init__.py"},
		without: "mailboxes are not shared with a program in Python",
	},
	{
		name: Python, programs: []string{"/usr/bin/python3"}, asks: "--version", modules: []string{"usr/lib/python3/dist-packages/psycopg"},
		without: "persistent workers in Python, and enqueues by psycopg, are not tested",
	},
	{
		name: Node, programs: []string{"node"}, asks: "--version", modules: []string{"usr/share/nodejs/pg"},
		without: "persistent workers in Node, and enqueues by pg, are not tested",
	},
	{
		name: "promtool", programs: []string{"promtool"}, asks: "--version",
		without: "alerts and metrics are read by our own parsers only",
	},
	{name: Chromium, programs: []string{"chromium", "google-chrome"}, asks: "--version", without: "console is not looked at in a browser"},
	{name: Axe, archives: []string{".m2/repository/org/webjars/npm/axe-core/*/axe-core-*.jar"}, without: "console may have barriers"},
	{
		name: "C compiler", programs: []string{"gcc", "clang"}, asks: "--version",
		without: "tests run without the race detector",
	},
}

// Names of what tests ask for as they do for a server.
const (
	PythonClient = "Redis client of Python"
	Python       = "Python with psycopg"
	Node         = "Node with pg"
	Chromium     = "Chromium"
	Axe          = "axe-core"   // a library in JavaScript, which finds barriers in a page
	Compiler     = "C compiler" // for the race detector
	newestKafka  = "newest Kafka"
)

// versionTimeout bounds the question for a version.
const versionTimeout = 5 * time.Second

// Machine finds files and programs.
type Machine struct {
	Root    fs.FS // the whole file system
	Home    string
	Env     func(string) string
	Program func(string) (string, error)                       // finds a program on the path
	Ask     func(ctx context.Context, file, arg string) string // what a program says to arg
}

// This is the machine that the tests run on.
func This() Machine {
	home, err := os.UserHomeDir()
	if err != nil {
		home = string(filepath.Separator) // then nothing is found there
	}
	return Machine{Root: os.DirFS("/"), Home: home, Env: os.Getenv, Program: exec.LookPath, Ask: ask}
}

func ask(ctx context.Context, file, arg string) string {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, file, arg).Output()
	if err != nil {
		return ""
	}
	return string(out)
}

// Find looks for every server, in an order that does not change.
func Find(ctx context.Context, m Machine) []Server {
	var all []Server
	for _, w := range servers {
		s := Server{Name: w.name, Env: w.env, Without: w.without}
		switch {
		case w.env != "" && m.Env(w.env) != "":
			s.Given = true
		case m.has(w.needs) && m.hasAll(w.modules):
			s.File = m.find(w)
		}
		if s.File != "" {
			s.Version = m.version(ctx, w, s.File)
		}
		all = append(all, s)
	}
	return all
}

// Program returns the file of a program that was found. Where there is none the test is skipped, or
// fails.
func Program(t testing.TB, name string) string {
	t.Helper()
	for _, s := range Find(t.Context(), This()) {
		if s.Name == name {
			if !s.Found() {
				need(t, s.String())
			}
			return s.File
		}
	}
	t.Fatal("unknown program " + name)
	return ""
}

func (m Machine) has(programs []string) bool {
	for _, program := range programs {
		if _, err := m.Program(program); err != nil {
			return false
		}
	}
	return true
}

func (m Machine) hasAll(folders []string) bool {
	for _, folder := range folders {
		if _, err := fs.Stat(m.Root, folder); err != nil {
			return false
		}
	}
	return true
}

func (m Machine) find(w wanted) string {
	for _, program := range w.programs {
		if file, err := m.Program(program); err == nil {
			return file
		}
	}
	if file := m.newest(w.installed, ""); file != "" {
		return file
	}
	return m.newest(w.archives, strings.TrimPrefix(filepath.ToSlash(m.Home), "/"))
}

// newest finds the file with the highest version among the patterns.
func (m Machine) newest(patterns []string, below string) string {
	var found []string
	for _, p := range patterns {
		matches, err := fs.Glob(m.Root, path.Join(below, p))
		if err == nil { // it is only ever of a bad pattern, which the tests would show
			found = append(found, matches...)
		}
	}
	if len(found) == 0 {
		return ""
	}
	return "/" + slices.MaxFunc(found, compareVersions)
}

var number = regexp.MustCompile(`\d+`)

// compareVersions compares the numbers in two paths, so that 9 is before 15.
func compareVersions(a, b string) int {
	return slices.CompareFunc(number.FindAllString(a, -1), number.FindAllString(b, -1), func(x, y string) int {
		return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y))
	})
}

var version = regexp.MustCompile(`\d+\.\d+(\.\d+)?`)

func (m Machine) version(ctx context.Context, w wanted, file string) string {
	if w.asks != "" {
		return version.FindString(m.Ask(ctx, file, w.asks))
	}
	return version.FindString(path.Base(strings.ReplaceAll(file, "kafka_2.13", "kafka")))
}
