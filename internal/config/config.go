// Package config turns flags, environment, files and defaults into one checked
// value, in that order of precedence. It is the only reader of the environment.
package config

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/nixie-go/nixie"
)

// Environment looks a variable up; "" is not set.
type Environment func(name string) string

// OS is the environment of the process.
func OS() Environment { return os.Getenv }

// Inherited is what commands inherit of this process's environment.
func Inherited() []string { return os.Environ() }

// StoreURL is where the store is: the flag, NIXIE_STORE, or a file in the user's
// data folder.
func StoreURL(flag string, env Environment) (string, error) {
	if flag != "" {
		return flag, nil
	}
	if url := env("NIXIE_STORE"); url != "" {
		return url, nil
	}
	folder := env("XDG_DATA_HOME")
	if folder == "" {
		home := env("HOME")
		if home == "" {
			return "", nixie.Errorf(nixie.CodeInvalid, "no place for the store: set NIXIE_STORE, or give --store sqlite:///path/to/file")
		}
		folder = filepath.Join(home, ".local", "share")
	}
	return "sqlite://" + filepath.Join(folder, "nixie", "nixie.db"), nil
}

// StateFolder is where this machine's running processes are noted: not data, and
// of no use after a restart of the machine.
func StateFolder(env Environment) string {
	if folder := env("XDG_STATE_HOME"); folder != "" {
		return filepath.Join(folder, "nixie")
	}
	if home := env("HOME"); home != "" {
		return filepath.Join(home, ".local", "state", "nixie")
	}
	return filepath.Join(os.TempDir(), "nixie-state")
}

// MaskPatterns are what is hidden in failures beside what is known to be secret:
// the flags, and the lines of NIXIE_MASK.
func MaskPatterns(flags []string, env Environment) []string {
	patterns := slices.Clone(flags)
	for line := range strings.Lines(env("NIXIE_MASK")) {
		if line = strings.TrimRight(line, "\r\n"); line != "" {
			patterns = append(patterns, line)
		}
	}
	return patterns
}

// Actor is who is recorded as having done something: NIXIE_ACTOR, or the user
// and machine.
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

// KafkaLogin is who a broker is told to be and by which password, where its URL
// does not say: arguments are seen by everybody on a machine.
func KafkaLogin(env Environment) (user, password string) {
	return env("NIXIE_KAFKA_USER"), env("NIXIE_KAFKA_PASSWORD")
}
