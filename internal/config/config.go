// Package config makes settings from flags, environment and defaults, in that order of precedence.
// It is the only reader of the environment.
package config

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/nixie-go/nixie"
)

// Environment returns the value of a variable; "" means that it is not set.
type Environment func(name string) string

// OS returns the environment of the process.
func OS() Environment { return os.Getenv }

// Inherited returns the environment of this process, for commands to inherit.
func Inherited() []string { return os.Environ() }

// StoreURL returns the URL of the store: the flag, NIXIE_STORE, or a file in the user's data
// folder.
func StoreURL(flag string, env Environment) (string, error) {
	if url := cmp.Or(flag, env("NIXIE_STORE")); url != "" {
		return fileOrURL(url), nil
	}
	folder := env("XDG_DATA_HOME")
	if folder == "" {
		home := env("HOME")
		if home == "" {
			return "", nixie.Errorf(nixie.CodeInvalid, "no folder for the store: set NIXIE_STORE, or give --store sqlite:///path/to/file")
		}
		folder = filepath.Join(home, ".local", "share")
	}
	return "sqlite://" + filepath.Join(folder, "nixie", "nixie.db"), nil
}

// fileOrURL makes a URL of the path of a file, which its ending tells.
func fileOrURL(text string) string {
	switch filepath.Ext(text) {
	case ".db", ".sqlite", ".sqlite3":
		if !strings.Contains(text, ":") {
			return "sqlite://" + text
		}
	}
	return text
}

// StateFolder returns the folder for notes about this machine's running processes. They are not
// data: a restart of the machine makes them useless.
func StateFolder(env Environment) string {
	if folder := env("XDG_STATE_HOME"); folder != "" {
		return filepath.Join(folder, "nixie")
	}
	if home := env("HOME"); home != "" {
		return filepath.Join(home, ".local", "state", "nixie")
	}
	return temporaryState()
}

// temporaryState is a folder of this user: one that several users share belongs to the first.
func temporaryState() string {
	return filepath.Join(os.TempDir(), "nixie-state-"+strconv.Itoa(os.Getuid()))
}

// MaskPatterns returns the user's patterns of secrets in failures: the flags, and the lines of
// NIXIE_MASK.
func MaskPatterns(flags []string, env Environment) []string {
	patterns := slices.Clone(flags)
	for line := range strings.Lines(env("NIXIE_MASK")) {
		if line = strings.TrimRight(line, "\r\n"); line != "" {
			patterns = append(patterns, line)
		}
	}
	return patterns
}

// Hosts returns the names that requests may ask for: the flags, and NIXIE_HOSTS.
func Hosts(flags []string, env Environment) []string {
	return append(slices.Clone(flags), strings.Fields(env("NIXIE_HOSTS"))...)
}

// Actor returns the name that the audit records: NIXIE_ACTOR, or the user and machine.
func Actor(env Environment) string {
	if actor := env("NIXIE_ACTOR"); actor != "" {
		return actor
	}
	name := env("USER")
	if name == "" {
		name = env("LOGNAME")
	}
	if name == "" {
		name = "uid" + strconv.Itoa(os.Getuid())
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return name + "@" + host
}

// BrokerLogin returns user and password for a broker, kafka, redis or rabbitmq, whose URL has none.
// The environment hides them better than arguments, which all users of a machine can see.
func BrokerLogin(env Environment, url string) (user, password string) {
	switch {
	case strings.HasPrefix(url, "redis"):
		return env("NIXIE_REDIS_USER"), env("NIXIE_REDIS_PASSWORD")
	case strings.HasPrefix(url, "rabbitmq"), strings.HasPrefix(url, "amqp"):
		return env("NIXIE_RABBITMQ_USER"), env("NIXIE_RABBITMQ_PASSWORD")
	}
	return env("NIXIE_KAFKA_USER"), env("NIXIE_KAFKA_PASSWORD")
}
