package itemfile

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/nixie-go/nixie"
)

// Attachments that hold what an item says otherwise than we would write it.
const (
	keptItem    = "mapreduce.item"    // with the first failure, which is never dropped
	keptFailure = "mapreduce.failure" // with each failure that needs it
)

// object is a JSON object by the names of its fields.
type object map[string]json.RawMessage

// change is a field that we would write otherwise. As long as we still would
// write Ours, it is written as Theirs; empty is no such field.
type change struct {
	Ours   json.RawMessage `json:"ours,omitempty"`
	Theirs json.RawMessage `json:"theirs,omitempty"`
}

// changes are those of one object.
type changes map[string]change

// keptOfItem is the content of keptItem.
type keptOfItem struct {
	Item      changes           `json:"item,omitempty"`
	Artifacts changes           `json:"worktree_artifacts,omitempty"`
	Dropped   []json.RawMessage `json:"dropped,omitempty"` // entries after the first that the history has no room for
}

// compare finds what has to be kept so that ours can become theirs.
func compare(ours, theirs object) changes {
	found := changes{}
	for _, side := range [...]object{ours, theirs} {
		for name := range side {
			if !same(ours[name], theirs[name]) {
				found[name] = change{ours[name], theirs[name]}
			}
		}
	}
	return found
}

// apply writes as theirs what is as it was when it came.
func (c changes) apply(now object) {
	for name, changed := range c {
		switch {
		case !same(now[name], changed.Ours):
		case len(changed.Theirs) == 0:
			delete(now, name)
		default:
			now[name] = changed.Theirs
		}
	}
}

// same compares JSON values; numbers by how they are written. An empty one is
// no value.
func same(a, b json.RawMessage) bool {
	if len(a) == 0 || len(b) == 0 || bytes.Equal(a, b) {
		return len(a) == len(b)
	}
	x, errX := value(a)
	y, errY := value(b)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

func value(raw json.RawMessage) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

// keepItem finds what the fields of a letter cannot hold of an item.
func keepItem(l *nixie.Letter, theirs object, dropped []json.RawMessage) ([]nixie.Attachment, error) {
	ours, err := itemOf(l)
	if err != nil {
		return nil, err
	}
	kept := keptOfItem{Dropped: dropped}
	theirs = maps.Clone(theirs)
	var mine, yours object
	if json.Unmarshal(ours["worktree_artifacts"], &mine) == nil && json.Unmarshal(theirs["worktree_artifacts"], &yours) == nil {
		kept.Artifacts = compare(mine, yours)
		delete(ours, "worktree_artifacts")
		delete(theirs, "worktree_artifacts")
	}
	// Entries of the history keep what is theirs themselves.
	if entries := theirs["failure_history"]; len(entries) > 0 && entries[0] == '[' {
		delete(ours, "failure_history")
		delete(theirs, "failure_history")
	}
	kept.Item = compare(ours, theirs)
	if len(kept.Item) == 0 && len(kept.Artifacts) == 0 && len(kept.Dropped) == 0 {
		return nil, nil
	}
	return keep(keptItem, kept)
}

func keepFailure(f *nixie.Failure, theirs object) ([]nixie.Attachment, error) {
	ours, err := failureOf(f)
	if err != nil {
		return nil, err
	}
	found := compare(ours, theirs)
	if len(found) == 0 {
		return nil, nil
	}
	return keep(keptFailure, found)
}

func keep(name string, v any) ([]nixie.Attachment, error) {
	data, err := Marshal(v)
	if err != nil {
		return nil, err
	}
	return pieces(name, data), nil
}

// Marshal is json.Marshal without escapes for HTML.
func Marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, nixie.Errorf(nixie.CodeInvalid, "it cannot be written as JSON: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// sorted is the names of an object, known ones first in their order.
func (o object) sorted(known []string) []string {
	var names []string
	for _, name := range known {
		if _, ok := o[name]; ok {
			names = append(names, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if !slices.Contains(known, name) {
			names = append(names, name)
		}
	}
	return names
}
