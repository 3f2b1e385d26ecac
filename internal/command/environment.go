package command

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Bounds of the fields in an environment. Fields beyond them are left out; the whole item is on
// standard input.
const (
	MaxVariable = 128 << 10 // bytes of one variable with its name, the limit of Linux
	MaxFields   = 512 << 10 // bytes of all fields of an item
)

// Prefixes of variables that hold fields of the item, and values in a script of a workflow file.
const (
	fieldPrefix = "NIXIE_FIELD_"
	valuePrefix = "NIXIE_VALUE_"
)

// Variables that mark the processes of a guard.
const (
	markVariable = "NIXIE_GUARD"      // in the environment of all children of a guard
	fileVariable = "NIXIE_GUARD_FILE" // in that of a supervisor
)

// Environment is the part of the environment that all commands of a runner share. It is the
// caller's environment without the variables that configure Nixie, which may hold secrets, and
// without those that Nixie sets for commands. It does not change and is safe for concurrent use.
type Environment struct{ base []string }

// NewEnvironment makes an Environment from a list like that of os.Environ.
func NewEnvironment(environ []string) Environment {
	return Environment{slices.DeleteFunc(slices.Clone(environ), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return reserved(name)
	})}
}

// reserved reports whether Nixie reads a variable or sets it for commands.
func reserved(name string) bool {
	switch name {
	case "NIXIE_CONFIG", "NIXIE_STORE", "NIXIE_STORE_FILE", "NIXIE_ACTOR", "NIXIE_MASK", "NIXIE_LISTEN", "NIXIE_PPROF", "NIXIE_METRICS",
		"NIXIE_HOSTS", "NIXIE_LOG_FORMAT", "NIXIE_LOG_LEVEL",
		"NIXIE_KAFKA_USER", "NIXIE_KAFKA_USER_FILE", "NIXIE_KAFKA_PASSWORD", "NIXIE_KAFKA_PASSWORD_FILE",
		"NIXIE_REDIS_USER", "NIXIE_REDIS_USER_FILE", "NIXIE_REDIS_PASSWORD", "NIXIE_REDIS_PASSWORD_FILE",
		"NIXIE_RABBITMQ_USER", "NIXIE_RABBITMQ_USER_FILE", "NIXIE_RABBITMQ_PASSWORD", "NIXIE_RABBITMQ_PASSWORD_FILE",
		markVariable, fileVariable,
		"NIXIE_ITEM_ID", "NIXIE_ATTEMPT", "NIXIE_LEASE", "NIXIE_VERDICT", "NIXIE_ITEM_FILE", "NIXIE_LOG_FILE", "NIXIE_RESULT_FILE",
		"NIXIE_STEPS", "NIXIE_STEPS_JSON", "NIXIE_TRY", "NIXIE_GENERATION", "NIXIE_REDRIVES", "NIXIE_OPERATION",
		"NIXIE_FIRST_FAILED_AT", "NIXIE_HEADERS_FILE",
		"NIXIE_QUEUE", "NIXIE_MESSAGE_ID", "NIXIE_TYPE", "NIXIE_KEY", "NIXIE_STREAM":
		return true
	}
	return strings.HasPrefix(name, fieldPrefix) || strings.HasPrefix(name, valuePrefix)
}

// ItemVariables are the variables that describe the item of one command. An empty string or 0 sets
// no variable.
type ItemVariables struct {
	ItemID  string // NIXIE_ITEM_ID
	Attempt int    // NIXIE_ATTEMPT; the first is 1
	Lease   int64  // NIXIE_LEASE, the fencing number
	Verdict string // NIXIE_VERDICT: the path a verdict may be written to

	ItemFile   string // NIXIE_ITEM_FILE: the path of the item
	LogFile    string // NIXIE_LOG_FILE: the path of a log that is kept with a failure
	ResultFile string // NIXIE_RESULT_FILE: the path of a result that is kept after a success

	HeadersFile string // NIXIE_HEADERS_FILE: the path of all headers, as a list in JSON

	Generation    int       // NIXIE_GENERATION, and NIXIE_REDRIVES, which is one less
	Operation     string    // NIXIE_OPERATION: the redrive that sent it back
	FirstFailedAt time.Time // NIXIE_FIRST_FAILED_AT, in any generation

	Steps []string // NIXIE_STEPS with commas between them, NIXIE_STEPS_JSON
	Try   bool     // NIXIE_TRY=1: the item is a copy of a letter

	Queue, MessageID, Type, Key, Stream string // NIXIE_QUEUE, NIXIE_MESSAGE_ID and so on

	Fields []Field // NIXIE_FIELD_<NAME>
}

// Field is a scalar of an item as text.
type Field struct{ Name, Value string }

// For returns the complete environment of one command. It writes the name of a field in capitals,
// and makes _ of all characters but A-Z, 0-9 and _. Of fields with the same name the first wins. It
// leaves out a value with a NUL byte or beyond [MaxVariable], and fields beyond [MaxFields].
func (e Environment) For(item ItemVariables) []string {
	env := make([]string, 0, len(e.base)+19+len(item.Fields)) // 19: those below and the guard's
	env = append(env, e.base...)
	if item.ItemID != "" {
		env = append(env, "NIXIE_ITEM_ID="+item.ItemID)
	}
	if item.Attempt != 0 {
		env = append(env, "NIXIE_ATTEMPT="+strconv.Itoa(item.Attempt))
	}
	if item.Lease != 0 {
		env = append(env, "NIXIE_LEASE="+strconv.FormatInt(item.Lease, 10))
	}
	if item.Generation != 0 {
		env = append(env, "NIXIE_GENERATION="+strconv.Itoa(item.Generation), "NIXIE_REDRIVES="+strconv.Itoa(item.Generation-1))
	}
	if !item.FirstFailedAt.IsZero() {
		env = append(env, "NIXIE_FIRST_FAILED_AT="+item.FirstFailedAt.UTC().Format(time.RFC3339Nano))
	}
	for _, v := range [...]struct{ name, value string }{
		{"OPERATION", item.Operation}, {"HEADERS_FILE", item.HeadersFile},
		{"VERDICT", item.Verdict}, {"ITEM_FILE", item.ItemFile}, {"LOG_FILE", item.LogFile}, {"RESULT_FILE", item.ResultFile},
		{"QUEUE", item.Queue}, {"MESSAGE_ID", item.MessageID}, {"TYPE", item.Type}, {"KEY", item.Key}, {"STREAM", item.Stream},
	} {
		if v.value != "" {
			env = append(env, "NIXIE_"+v.name+"="+v.value)
		}
	}
	if item.Try {
		env = append(env, "NIXIE_TRY=1")
	}
	return appendFields(appendSteps(env, item.Steps), item.Fields)
}

// appendSteps adds the finished steps. It leaves out a list beyond [MaxVariable].
func appendSteps(env, steps []string) []string {
	if len(steps) == 0 {
		return env
	}
	list, err := json.Marshal(steps)
	for _, v := range [...]string{"NIXIE_STEPS=" + strings.Join(steps, ","), "NIXIE_STEPS_JSON=" + string(list)} {
		if err == nil && len(v) < MaxVariable {
			env = append(env, v)
		}
	}
	return env
}

// With returns the complete environment of one command with variables under their own names, which
// replace those of the caller. It leaves out a value with a NUL byte or beyond [MaxVariable].
func (e Environment) With(variables ...Field) []string {
	env := slices.DeleteFunc(slices.Clone(e.base), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.ContainsFunc(variables, func(v Field) bool { return v.Name == name })
	})
	for _, v := range variables {
		if len(v.Name)+len("=")+len(v.Value) < MaxVariable && strings.IndexByte(v.Value, 0) < 0 {
			env = append(env, v.Name+"="+v.Value)
		}
	}
	return env
}

func appendFields(env []string, fields []Field) []string {
	fitFields(fields, func(variable, value string) { env = append(env, variable+"="+value) })
	return env
}

// LeftOut counts the fields that [Environment.For] leaves out of an environment.
func LeftOut(fields []Field) int { return fitFields(fields, func(string, string) {}) }

// fitFields calls take with each field that fits, and counts the others.
func fitFields(fields []Field, take func(variable, value string)) (left int) {
	size, seen := 0, make(map[string]bool, len(fields))
	for _, field := range fields {
		name := variableName(field.Name)
		bytes := len(name) + len("=") + len(field.Value)
		if bytes >= MaxVariable || size+bytes > MaxFields || strings.IndexByte(field.Value, 0) >= 0 || seen[name] {
			left++
			continue
		}
		size += bytes
		seen[name] = true
		take(name, field.Value)
	}
	return left
}

func variableName(field string) string {
	return fieldPrefix + strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z':
			return r - 'a' + 'A'
		case 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
			return r
		}
		return '_'
	}, field)
}
