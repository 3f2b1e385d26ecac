package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/command"
	"github.com/nixie-go/nixie/internal/items"
)

// values holds what the steps of a workflow file know in one attempt.
type values struct {
	env    []command.Field // of the file
	item   items.Stored
	given  map[string]json.RawMessage // before the attempt
	made   map[string]json.RawMessage // by its steps
	output string                     // of the last step that ran
	ran    bool                       // a step has run
}

// rootOf splits the first name off a path.
func rootOf(path string) (root, rest string) {
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		return path, ""
	}
	return path[:end], strings.TrimPrefix(path[end:], ".")
}

// Value implements command.Values.
func (v *values) Value(path string) (text string, ok bool) {
	root, rest := rootOf(path)
	switch root {
	case "item":
		return v.item.Value(rest)
	case "shell":
		return v.output, rest == "output"
	}
	raw, ok := v.made[root]
	if !ok {
		raw, ok = v.given[root]
	}
	switch {
	case ok && rest == "":
		return textOf(raw), true
	case ok:
		return items.OpenStored(raw, false).Value(rest)
	}
	i := slices.IndexFunc(v.env, func(f command.Field) bool { return f.Name == path })
	if i < 0 {
		return "", false
	}
	return v.env[i].Value, true
}

// textOf returns the text of a JSON text, and any other JSON as it is.
func textOf(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil && len(raw) > 0 && raw[0] == '"' {
		return text
	}
	return string(raw)
}

// Known implements command.Values.
func (v *values) Known() []string {
	names := []string{"shell.output"}
	item, _ := v.item.Value("")
	if item != "" {
		names = append(names, "item")
		v.item.Scalars(func(name, _ string) { names = append(names, "item."+name) })
	}
	names = append(slices.AppendSeq(names, maps.Keys(v.given)), slices.Collect(maps.Keys(v.made))...)
	for _, f := range v.env {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > maxKnown {
		names = append(names[:maxKnown], "…")
	}
	return names
}

// maxKnown bounds the names in an error.
const maxKnown = 30

// object returns all values as JSON has them, for a condition.
func (v *values) object() map[string]any {
	all := map[string]any{"shell": map[string]any{"output": v.output}}
	for _, f := range v.env {
		all[f.Name] = f.Value
	}
	for _, some := range []map[string]json.RawMessage{v.given, v.made} {
		for name, raw := range some {
			if value, ok := items.Value(raw); ok {
				all[name] = value
			}
		}
	}
	if item, _ := v.item.Value(""); item != "" {
		all["item"] = item
		if value, ok := items.Value([]byte(item)); ok {
			all["item"] = value
		}
		if _, line := v.item.Field(items.LineField); line && all["item"] == item {
			all["item"] = map[string]any{items.LineField: item}
		}
	}
	return all
}

// begin reads what is known before the steps of an attempt.
func (a *attempt) beginValues(ctx context.Context) error {
	a.known = values{env: a.c.Env, item: a.item, made: map[string]json.RawMessage{}}
	if a.c.Values == nil {
		return nil
	}
	var err error
	a.known.given, err = a.c.Values(ctx, a.d)
	return err
}

// keepValues hands on what the steps made known.
func (a *attempt) keepValues(ctx context.Context) error {
	if a.c.Keep == nil {
		return nil
	}
	made := maps.Clone(a.known.made)
	if utf8.ValidString(a.known.output) && len(a.known.output) <= command.MaxValue {
		made["shell"] = outputValue(a.known.output)
	}
	return a.c.Keep(ctx, a.d, made)
}

// outputValue makes the value of which ${NAME.output} is the text.
func outputValue(text string) json.RawMessage {
	raw, _ := json.Marshal(map[string]string{"output": text}) // texts are no error
	return raw
}

// outputOf returns the output of a run as values have it: without the line ends at its end.
func outputOf(tails ...command.Tail) string {
	var b strings.Builder
	for _, t := range tails {
		b.Write(t.Data)
	}
	return strings.TrimRight(b.String(), "\r\n")
}

// capture makes a value of the standard output of a step.
func (a *attempt) capture(s *step, result *command.Result) error {
	output := outputOf(result.Stdout)
	name := s.Capture
	if s.Name == "" && (name == "" || name == "shell.output") {
		return nil
	}
	fails := func(format string, args ...any) error {
		return nixie.WithReason(nixie.Permanent(nixie.Errorf(nixie.CodeInvalid, "line %d: "+format, append([]any{s.Line}, args...)...)),
			nixie.ReasonValidation)
	}
	switch {
	case result.Stdout.Dropped > 0 || len(output) > command.MaxValue:
		return fails("the output is longer than %d bytes, the limit of a value: let the step write it to a file", command.MaxValue)
	case !utf8.ValidString(output):
		return fails("the output is not valid UTF-8, so it is no value: let the step write it to a file")
	case s.JSON && !json.Valid([]byte(output)):
		return fails("the output is no JSON, and capture_format is json: %s", fmt.Sprintf("%.80q", output))
	}
	if s.Name != "" {
		a.known.made[s.Name] = outputValue(output)
	}
	switch {
	case name == "" || name == "shell.output":
	case s.JSON:
		a.known.made[name] = json.RawMessage(output)
	default:
		a.known.made[name], _ = json.Marshal(output) // a text is no error
	}
	return nil
}
