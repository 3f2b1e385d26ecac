package itemfile

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/nixie-go/nixie"
)

// Attachments that hold the differences between an item and what we would write.
const (
	attachmentItem    = "mapreduce.item"    // of the first failure, which is never dropped
	attachmentFailure = "mapreduce.failure" // of each failure that needs it
)

// object is a JSON object: its fields by name.
type object map[string]json.RawMessage

// difference is a field that we would write otherwise. When we would still write Ours, we write
// Theirs. An empty value means that the field is absent.
type difference struct {
	Ours   json.RawMessage `json:"ours,omitempty"`
	Theirs json.RawMessage `json:"theirs,omitempty"`
}

// differences holds the differences of one object, by field.
type differences map[string]difference

// itemDifferences is the content of keptItem.
type itemDifferences struct {
	Item      differences       `json:"item,omitempty"`
	Artifacts differences       `json:"worktree_artifacts,omitempty"`
	Dropped   []json.RawMessage `json:"dropped,omitempty"` // entries after the first that the history cannot hold
}

// compare returns the differences that make theirs of ours.
func compare(ours, theirs object) differences {
	found := differences{}
	for _, side := range [...]object{ours, theirs} {
		for name := range side {
			if !same(ours[name], theirs[name]) {
				found[name] = difference{ours[name], theirs[name]}
			}
		}
	}
	return found
}

// apply replaces the fields that have not changed since the item came.
func (c differences) apply(now object) {
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

// same compares JSON values, and numbers by their text. An empty one means no value.
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

// itemAttachments keeps the parts of an item that the fields of a letter cannot hold.
func itemAttachments(l *nixie.Letter, theirs object, dropped []json.RawMessage) ([]nixie.Attachment, error) {
	ours, err := itemOf(l)
	if err != nil {
		return nil, err
	}
	kept := itemDifferences{Dropped: dropped}
	theirs = maps.Clone(theirs)
	var mine, yours object
	if json.Unmarshal(ours["worktree_artifacts"], &mine) == nil && json.Unmarshal(theirs["worktree_artifacts"], &yours) == nil {
		kept.Artifacts = compare(mine, yours)
		delete(ours, "worktree_artifacts")
		delete(theirs, "worktree_artifacts")
	}
	// Each failure keeps the differences of its own entry.
	if entries := theirs["failure_history"]; len(entries) > 0 && entries[0] == '[' {
		delete(ours, "failure_history")
		delete(theirs, "failure_history")
	}
	kept.Item = compare(ours, theirs)
	if len(kept.Item) == 0 && len(kept.Artifacts) == 0 && len(kept.Dropped) == 0 {
		return nil, nil
	}
	return attach(attachmentItem, kept)
}

func failureAttachments(f *nixie.Failure, theirs object) ([]nixie.Attachment, error) {
	ours, err := failureOf(f)
	if err != nil {
		return nil, err
	}
	found := compare(ours, theirs)
	if len(found) == 0 {
		return nil, nil
	}
	return attach(attachmentFailure, found)
}

func attach(name string, v any) ([]nixie.Attachment, error) {
	data, err := Marshal(v)
	if err != nil {
		return nil, err
	}
	return split(name, data), nil
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

// sorted returns the names of an object, known ones first in their order.
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
