package policy

import (
	"encoding/json"
	"slices"
	"strings"
)

// Names under which loggers write what happened, the error of it, and how bad it is. The first that
// is there counts.
var (
	loggedText  = []string{"msg", "message", "event", "@m"}
	loggedError = []string{"error", "err", "exception", "error.message", "exc_info"}
	loggedLevel = []string{"level", "severity", "lvl", "levelname", "log.level"}
)

// logged returns what a line of a logger in JSON says: its message, and its error after a colon. It
// returns "" for any other line, also for an answer of a service in JSON, which has no level.
func logged(line string) string {
	if !strings.HasPrefix(line, "{") {
		return ""
	}
	fields := fieldsOf([]byte(line))
	if !slices.ContainsFunc(loggedLevel, func(name string) bool { return fields[name] != nil }) {
		return ""
	}
	text, failed := textUnder(fields, loggedText), textUnder(fields, loggedError)
	switch {
	case text == "" || text == failed:
		return failed
	case failed == "":
		return text
	}
	return text + ": " + failed
}

func fieldsOf(object []byte) (fields map[string]json.RawMessage) {
	if json.Unmarshal(object, &fields) != nil {
		return nil
	}
	return fields
}

// textUnder returns the first text under one of names, on one line. For an object that is its own.
func textUnder(fields map[string]json.RawMessage, names []string) string {
	for _, name := range names {
		if text := textIn(fields[name]); text != "" {
			return text
		}
		inner := fieldsOf(fields[name])
		for _, of := range loggedText {
			if text := textIn(inner[of]); text != "" {
				return text
			}
		}
	}
	return ""
}

// textIn returns a value that is a text, on one line, else "".
func textIn(value []byte) (text string) {
	if json.Unmarshal(value, &text) != nil {
		return ""
	}
	return strings.Join(strings.Fields(text), " ")
}
