package config

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nixie-go/nixie/internal/command"
	"github.com/nixie-go/nixie/internal/spelling"
)

// No command inherits the variables that configure Nixie: they may hold a password.
func TestNoCommandInheritsOurVariables(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`"(NIXIE_\w+)"`).FindAllSubmatch(source, -1) {
			names[string(name[1])] = true
		}
	}
	for _, s := range settings {
		names[s.variable] = true
		if s.file {
			names[s.variable+ofFile] = true
		}
	}
	if len(names) < 14 {
		t.Fatalf("%d variables are read", len(names))
	}
	for name := range names {
		if left := command.NewEnvironment([]string{name + "=x"}).With(); len(left) > 0 {
			t.Errorf("%s is inherited", name)
		}
	}
}

// write makes a file in a folder, and returns its path.
func write(t *testing.T, folder, name, text string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// environment is one of a map.
func environment(of map[string]string) Environment {
	return func(name string) string { return of[name] }
}

// A variable overrides the file, the file a default; files of their own hold secrets.
func TestPrecedence(t *testing.T) {
	folder := t.TempDir()
	secret := write(t, folder, "secret", "\ufefffrom-a-file\n")
	file := write(t, folder, "config.yaml", "\ufeff"+`
store: sqlite:///file.db
mask: [file-1, 'file-2']
listen: 127.0.0.1:1000
log:
  level: debug
kafka: {user: app, password_file: `+secret+"}\n")
	env := map[string]string{"NIXIE_CONFIG": file, "NIXIE_LISTEN": "127.0.0.1:2000", "NIXIE_MASK": "env-1", "OTHER": "kept"}
	c, err := Load("", environment(env))
	if err != nil {
		t.Fatal(err)
	}
	layered := c.Environment()
	for name, want := range map[string]string{
		"NIXIE_STORE": "sqlite:///file.db", "NIXIE_LISTEN": "127.0.0.1:2000", "NIXIE_MASK": "env-1\nfile-1\nfile-2",
		"NIXIE_LOG_LEVEL": "debug", "NIXIE_LOG_FORMAT": "", "NIXIE_KAFKA_USER": "app", "NIXIE_KAFKA_PASSWORD": "from-a-file",
		"OTHER": "kept",
	} {
		if got := layered(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	sources := map[string]string{}
	for _, v := range c.List() {
		sources[v.Setting] = v.Source
		if strings.Contains(v.Value, "from-a-file") {
			t.Errorf("%s is shown: %q", v.Setting, v.Value)
		}
	}
	for name, want := range map[string]string{
		"store": file, "listen": "$NIXIE_LISTEN", "mask": "$NIXIE_MASK, " + file, "pprof": "default",
	} {
		if sources[name] != want {
			t.Errorf("%s comes from %q, want %q", name, sources[name], want)
		}
	}
	env["NIXIE_KAFKA_PASSWORD"] = "from-a-variable"
	if c, err = Load("", environment(env)); err != nil || c.Of("kafka.password") != "from-a-variable" {
		t.Errorf("%v, %v", c, err)
	}
}

// The file of the user's folder is read if it is there. A file that is named has to be.
func TestWhereTheFileIs(t *testing.T) {
	folder := t.TempDir()
	for _, env := range []map[string]string{
		{}, {"HOME": folder}, {"XDG_CONFIG_HOME": folder, "HOME": "/no-home"}, {"NIXIE_CONFIG": os.DevNull},
	} {
		if _, err := Load("", environment(env)); err != nil {
			t.Errorf("%v: %v", env, err)
		}
	}
	if err := os.MkdirAll(filepath.Join(folder, ".config", "nixie"), 0o700); err != nil {
		t.Fatal(err)
	}
	path := write(t, filepath.Join(folder, ".config", "nixie"), "config.yaml", "actor: ann\n")
	if c, err := Load("", environment(map[string]string{"HOME": folder})); err != nil || c.Path != path || c.Of("actor") != "ann" {
		t.Errorf("%+v, %v", c, err)
	}
	for _, flag := range []string{filepath.Join(folder, "none.yaml"), folder} {
		if _, err := Load(flag, environment(nil)); err == nil {
			t.Errorf("%s is taken", flag)
		}
	}
}

// An error names the line, the column, the setting and what is wanted.
func TestWrongConfiguration(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"stroe: x", `line 1, column 1: key "stroe" is unknown: did you mean store?`},
		{"listen: 127.0.0.1:1\nlog:\n  leval: info", `line 3, column 3: key "log.leval" is unknown: did you mean log.level?`},
		{"kafka:\n  passwd: x", `line 2, column 3: key "kafka.passwd" is unknown: did you mean kafka.password?`},
		{"listen: 8321", `line 1, column 9: listen: "8321" has no port: give an address such as 127.0.0.1:8321`},
		{"\n\nlisten: 0.0.0.0:8321", `line 3, column 9: listen: "0.0.0.0:8321" may be reached from other machines`},
		{"metrics: 10s", `line 1, column 10: metrics: "10s" has no port`},
		{"log: {level: loud}", `line 1, column 14: log.level: "loud" is unknown: choose one of debug, info, warn, error`},
		{"log: {level: 3}", `log.level: "3" is unknown: choose one of`},
		{"log: json", `line 1, column 6: log: want keys with values`},
		{"actor: 12", `line 1, column 8: actor: want a text, this is a number: put it in quotes`},
		{"actor: true", `actor: want a text, this is true or false`},
		{"actor: [a]", `actor: want a text, this is a list`},
		{"hosts: [ops.example, 'https://ops.example']",
			`line 1, column 22: hosts: "https://ops.example" is no name of a host: give one like ops.example, without scheme and port`},
		{"hosts: ops.example", `line 1, column 8: hosts: want a list, as in hosts: ['one', 'two']`},
		{"mask: secret", `line 1, column 7: mask: want a list, as in mask: ['one', 'two']`},
		{"mask: [[x]]", `mask: want a text, this is a list`},
		{"mask: [1]", `line 1, column 8: mask: want a text, this is a number`},
		{"mask:\n- \"a\\nb\"", `line 2, column 3: mask: want one line`},
		{"kafka: {password: a, password_file: b}", "kafka.password and kafka.password_file are both given"},
		{"kafka: {password_file: /does/not/exist}", "kafka.password_file: /does/not/exist does not exist: check its path"},
		{"kafka: {password_file: " + os.DevNull + "}", "is empty"},
		{"log.level: info\nlog: {level: debug}", "line 2, column 7: log.level is given twice"},
		{"actor: a\nactor: b", "line 2, column 1"},
		{"- a", "want keys with values"},
		{"just text", "want keys with values"},
		{"a: &x b\nactor: *x", "column"},
		{"store: a\n---\nstore: b", "line 3, column 6: a second document"},
		{"store: [", "line 1, column 8: this is no YAML: "},
		{"log:\n\tlevel: info", "line 2, column 1: a tab cannot begin a value: YAML is indented with spaces"},
		{"metrics: 127.0.0.1:8321", "listen and metrics are both 127.0.0.1:8321: give two addresses"},
		{strings.Repeat("#", maxFile+1), "has more than 16384 bytes"},
	} {
		path := write(t, t.TempDir(), "config.yaml", tc.text)
		_, err := Load(path, environment(nil))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%.60q: %v, want %s", tc.text, err, tc.want)
		}
	}
	for variable, want := range map[string]string{
		"NIXIE_LISTEN":     `NIXIE_LISTEN: "x" has no port`,
		"NIXIE_LOG_FORMAT": `NIXIE_LOG_FORMAT: "x" is unknown: choose one of text, json`,
		"NIXIE_STORE_FILE": "NIXIE_STORE_FILE: x does not exist: check its path",
	} {
		if _, err := Load("", environment(map[string]string{variable: "x"})); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", variable, err, want)
		}
	}
}

// Hostile files are refused or read, and end neither the program nor its memory.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"store: x\nlog: {level: info}\nmask: [a, 'b']\n", "? a\n: b", "a: &x [*x]", "<<: *x", "store: |\n  x\n  y",
		"!!str x: y", "{", "\xff",
		"kafka:\n  password: >-\n    x\n", "- - - -", "store:",
		"--- ---", "%YAML 1.2\n---\nstore: x", "store: !!binary aGk=",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		found, err := parse("f.yaml", text)
		if err != nil {
			if !strings.Contains(err.Error(), "f.yaml") {
				t.Errorf("the error names no file: %v", err)
			}
			return
		}
		for key := range found {
			if spelling.Nearest(key, keys()) != key {
				t.Errorf("found the unknown key %q", key)
			}
		}
	})
}
