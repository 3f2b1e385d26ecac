// Package task reads what messages of other task queues tell of their tasks, whichever broker keeps
// them.
package task

import (
	"encoding/json"
	"math"
	"regexp"
	"strings"
	"sync"
)

// Task has what a message tells. What it does not tell is zero.
type Task struct {
	Kind     string // class, function or name
	Attempts int    // that failed
	Failure         // the newest that is told
}

// Failure is an exception.
type Failure struct{ Type, Text, Stack string }

// ReadDramatiq reads the body of a message of Dramatiq. That is stored as it was before its last
// attempt, so the failure is that of the attempt before.
func ReadDramatiq(body []byte) (t Task, is bool) {
	var m struct {
		Actor   string   `json:"actor_name"`
		ID      string   `json:"message_id"`
		Queue   string   `json:"queue_name"`
		Options *options `json:"options"`
	}
	if json.Unmarshal(body, &m) != nil || m.Actor == "" || m.ID == "" || m.Queue == "" || m.Options == nil {
		return Task{}, false
	}
	t = Task{Kind: m.Actor, Attempts: Count(m.Options.Retries) + 1}
	if trace := m.Options.Traceback; trace != "" {
		t.Type, t.Text = PythonError(trace)
		t.Stack = trace
	}
	return t, true
}

type options struct {
	Retries   float64 `json:"retries"`
	Traceback string  `json:"traceback"`
}

// ReadCelery reads the headers of a message of Celery, of its second protocol. It tells no failure.
func ReadCelery(headers map[string]any) (t Task, is bool) {
	name, _ := headers["task"].(string)
	root, _ := headers["root_id"].(string)
	if name == "" || root == "" {
		return Task{}, false
	}
	t = Task{Kind: name, Attempts: 1}
	switch n := headers["retries"].(type) {
	case int32:
		t.Attempts += Count(float64(n))
	case int64:
		t.Attempts += Count(float64(n))
	case uint8:
		t.Attempts += Count(float64(n))
	}
	return t, true
}

// Count makes a count of a number; 0 if it is none.
func Count(n float64) int {
	if !(n > 0) {
		return 0
	}
	return int(min(n, math.MaxInt32-1))
}

// exceptionLine matches the last part of a traceback of Python: the exception and its text.
var exceptionLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([A-Za-z_][\w.]*)(?:: ((?s:.*)))?$`)
})

// PythonError finds the exception at the end of a traceback. Without one all of it is the text.
func PythonError(trace string) (kind, text string) {
	lines := strings.Split(strings.TrimRight(trace, "\n"), "\n")
	last := -1
	for n, line := range lines {
		if strings.HasPrefix(line, `  File "`) {
			last = n
		}
	}
	if last < 0 {
		return "", trace
	}
	for n := last + 1; n < len(lines); n++ {
		if strings.HasPrefix(lines[n], " ") {
			continue
		}
		if m := exceptionLine().FindStringSubmatch(strings.Join(lines[n:], "\n")); m != nil {
			return m[1], m[2]
		}
		return "", strings.Join(lines[n:], "\n")
	}
	return "", ""
}
