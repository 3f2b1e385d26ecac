package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/nixie-go/nixie"
)

// Variables that are no settings, and the limit of what is read from files.
const (
	fileVariable = "NIXIE_CONFIG"
	maxFile      = 16 << 10 // bytes of a configuration, or of a file with one value
	ofFile       = "_FILE"  // ends the name of a variable that names a file with the value
	ofFileKey    = "_file"  // likewise of a key
)

// setting is one value that can be configured.
type setting struct {
	key      string // in the file; a dot is a level
	variable string
	initial  string             // without flag, variable and file
	secret   bool               // it is not shown
	file     bool               // a file of its own may hold it
	list     bool               // one value a line; a list in the file
	check    func(string) error // says what is wanted; nil takes every text
}

// settings lists all, in the order in which they are shown.
var settings = []setting{
	{key: "store", variable: "NIXIE_STORE", file: true},
	{key: "actor", variable: "NIXIE_ACTOR"},
	{key: "mask", variable: "NIXIE_MASK", list: true},
	{key: "listen", variable: "NIXIE_LISTEN", initial: "127.0.0.1:8321", check: CheckAddress},
	{key: "pprof", variable: "NIXIE_PPROF", check: CheckAddress},
	{key: "metrics", variable: "NIXIE_METRICS", check: CheckAddress},
	{key: "hosts", variable: "NIXIE_HOSTS", list: true, check: checkHosts},
	{key: "log.format", variable: "NIXIE_LOG_FORMAT", check: oneOf("text", "json")},
	{key: "log.level", variable: "NIXIE_LOG_LEVEL", initial: "info", check: oneOf("debug", "info", "warn", "error")},
	{key: "kafka.user", variable: "NIXIE_KAFKA_USER", file: true},
	{key: "kafka.password", variable: "NIXIE_KAFKA_PASSWORD", secret: true, file: true},
	{key: "redis.user", variable: "NIXIE_REDIS_USER", file: true},
	{key: "redis.password", variable: "NIXIE_REDIS_PASSWORD", secret: true, file: true},
	{key: "rabbitmq.user", variable: "NIXIE_RABBITMQ_USER", file: true},
	{key: "rabbitmq.password", variable: "NIXIE_RABBITMQ_PASSWORD", secret: true, file: true},
}

// CheckAddress refuses what is no loopback address with a port: nixie has no logins yet.
func CheckAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	_, wrong := strconv.ParseUint(port, 10, 16)
	switch {
	case err == nil && errors.Is(wrong, strconv.ErrRange):
		return fmt.Errorf("port of %q is out of range: give one from 0 to 65535", address)
	case err != nil || wrong != nil:
		return fmt.Errorf("%q has no port: give an address such as 127.0.0.1:8321", address)
	}
	if ip, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !ip.IsLoopback()) {
		return fmt.Errorf("%q may be reached from other machines, and nixie has no logins yet: "+
			"give a loopback address such as 127.0.0.1:%s", address, port)
	}
	return nil
}

// hostName matches a name of DNS, or an IPv4 address.
var hostName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)
})

// CheckHost refuses what is no name of a host, as a browser sends it.
func CheckHost(name string) error {
	if !hostName().MatchString(name) {
		return fmt.Errorf("%q is no name of a host: give one like ops.example, without scheme and port", name)
	}
	return nil
}

func checkHosts(list string) error {
	for _, name := range strings.Fields(list) {
		if err := CheckHost(name); err != nil {
			return err
		}
	}
	return nil
}

func oneOf(words ...string) func(string) error {
	return func(text string) error {
		if slices.Contains(words, text) {
			return nil
		}
		return fmt.Errorf("%q is unknown: choose one of %s", text, strings.Join(words, ", "))
	}
}

// Value is a setting as it applies.
type Value struct {
	Setting string `json:"setting"`
	Value   string `json:"value"` // *** for a secret
	Source  string `json:"source"`
}

// Config has the settings of environment and file.
type Config struct {
	Path   string // of the file; empty means none
	env    Environment
	values map[string]string // by variable
	list   []Value
}

// Load reads the file that the flag, NIXIE_CONFIG or the folder of the user's configuration names,
// and checks all settings. A variable overrides the file, except that the patterns of NIXIE_MASK
// and the names of NIXIE_HOSTS are added to those of the file.
func Load(flag string, env Environment) (*Config, error) {
	c := &Config{env: env, values: map[string]string{}}
	inFile := map[string]string{}
	path, must := filePath(flag, env)
	if path != "" {
		text, err := readFile(path)
		switch {
		case err == nil:
			if inFile, err = parse(path, text); err != nil {
				return nil, err
			}
			c.Path = path
		case must || !os.IsNotExist(err):
			return nil, Unreadable("configuration", path, err)
		}
	}
	for _, s := range settings {
		v, err := s.resolve(env, path, inFile)
		if err != nil {
			return nil, err
		}
		c.values[s.variable] = v.Value
		if s.secret && v.Value != "" {
			v.Value = "***"
		}
		c.list = append(c.list, v)
	}
	return c, c.checkAddresses()
}

// filePath returns the path of the file, and whether it has to exist.
func filePath(flag string, env Environment) (path string, must bool) {
	if path := cmp.Or(flag, env(fileVariable)); path != "" {
		return path, true
	}
	folder := env("XDG_CONFIG_HOME")
	if home := env("HOME"); folder == "" && home != "" {
		folder = filepath.Join(home, ".config")
	}
	if folder == "" {
		return "", false
	}
	return filepath.Join(folder, "nixie", "config.yaml"), false
}

// readFile reads a file up to its limit, without a byte order mark.
func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("it has more than %d bytes", maxFile)
	}
	return bytes.TrimPrefix(text, []byte("\ufeff")), err
}

// resolve finds the value that applies.
func (s setting) resolve(env Environment, path string, inFile map[string]string) (Value, error) {
	v := Value{Setting: s.key, Value: s.initial, Source: "default"}
	inEnv, variable, err := s.pick(env, s.variable, ofFile)
	if err != nil {
		return v, err
	}
	below, key, err := s.pick(func(key string) string { return inFile[key] }, s.key, ofFileKey)
	switch {
	case err != nil:
		return v, err
	case inEnv != "" && below != "" && s.list:
		v.Value, v.Source = inEnv+"\n"+below, "$"+variable+", "+path
	case inEnv != "":
		v.Value, v.Source = inEnv, "$"+variable
	case below != "":
		v.Value, v.Source = below, path
	default:
		return v, nil
	}
	if s.check != nil {
		if err := s.check(v.Value); err != nil {
			return v, nixie.Errorf(nixie.CodeInvalid, "%s: %w", cmp.Or(variable, key), err)
		}
	}
	return v, nil
}

// pick returns the value of a name, or that in the file which name and suffix name, with the name
// that gave it.
func (s setting) pick(of func(string) string, name, suffix string) (value, by string, err error) {
	value = of(name)
	file := ""
	if s.file {
		file = of(name + suffix)
	}
	switch {
	case value != "" && file != "":
		return "", "", nixie.Errorf(nixie.CodeInvalid, "%s and %s are both given: give one of them", name, name+suffix)
	case value != "":
		return value, name, nil
	case file == "":
		return "", "", nil
	}
	text, err := readFile(file)
	if err != nil {
		return "", "", Unreadable(name+suffix+":", file, err)
	}
	if value = strings.TrimRight(string(text), "\r\n"); value == "" {
		return "", "", nixie.Errorf(nixie.CodeInvalid, "%s: file %s is empty", name+suffix, file)
	}
	return value, name + suffix, nil
}

// checkAddresses refuses two listeners on one address.
func (c *Config) checkAddresses() error {
	names := []string{"listen", "pprof", "metrics"}
	for i, a := range names {
		for _, b := range names[i+1:] {
			if SameAddress(c.Of(a), c.Of(b)) {
				return nixie.Errorf(nixie.CodeInvalid, "%s and %s are both %s: give two addresses", a, b, c.Of(a))
			}
		}
	}
	return nil
}

// SameAddress reports whether two addresses are the same one. Each address with port 0 is another
// one.
func SameAddress(a, b string) bool {
	_, port, _ := net.SplitHostPort(a)
	return a != "" && a == b && port != "0"
}

// Of returns the value of a setting without the flags.
func (c *Config) Of(key string) string {
	for _, s := range settings {
		if s.key == key {
			return c.values[s.variable]
		}
	}
	panic("config: no setting " + key)
}

// Environment returns the environment with the values of all settings under the names of their
// variables.
func (c *Config) Environment() Environment {
	return func(name string) string {
		if value, known := c.values[name]; known {
			return value
		}
		return c.env(name)
	}
}

// List returns all settings, with *** instead of secrets.
func (c *Config) List() []Value { return slices.Clone(c.list) }
