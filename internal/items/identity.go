package items

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/nixie-go/nixie"
)

// contentPrefix begins the ID of an item that has none of its own.
const contentPrefix = "sha256-"

// firstOrdinal ends that of the first of those with the same bytes.
const firstOrdinal = "-0"

// sum is the first half of a SHA-256. Among 10 million different items the
// chance that two sums are the same by accident is below 1 in 10^24, and finding
// two on purpose takes 2^64 tries, so equal sums are taken as equal texts. Were
// it to happen all the same, nothing would be lost: two IDs would be refused as
// one, and two bodies would get different ordinals.
type sum [16]byte

func sumOf(text []byte) sum {
	whole := sha256.Sum256(text)
	return sum(whole[:16])
}

// identities knows the IDs that were given out.
type identities struct {
	field  string
	lines  map[sum]int64 // of IDs from the field: where each was
	bodies map[sum]int64 // of items without: how many had this body
}

func newIdentities(field string) *identities {
	return &identities{field: field, lines: make(map[sum]int64), bodies: make(map[sum]int64)}
}

// name finds the ID of an item.
func (n *identities) name(list string, item *Item) (string, *InputError) {
	id, given := "", false
	if !item.plain {
		value := find(item.Body, n.field)
		switch {
		case len(value) == 0 || string(value) == "null":
		case value[0] == '"':
			id, given = unquote(value), true
		case value[0] == '-' || value[0] >= '0' && value[0] <= '9':
			id, given = string(value), true
		default:
			return "", n.fault(list, item, "the ID field %q is %s: want a string or number, or choose another field with --id-field", n.field, kind(value[0]))
		}
	}
	if !given {
		id = n.content(item.Body)
		if len(n.lines) > 0 {
			if line, taken := n.lines[sumOf([]byte(id))]; taken {
				return "", n.fault(list, item, "line %d has the ID %q, which this item without one would get: choose another there", line, id)
			}
		}
		return id, nil
	}
	if id == "" {
		return "", n.fault(list, item, "the ID field %q is empty: give 1 to %d bytes, or choose another field with --id-field", n.field, nixie.MaxName)
	}
	if err := nixie.CheckName("the ID", id); err != nil {
		return "", n.fault(list, item, "%v; or choose another field with --id-field", err)
	}
	if n.made(id) {
		return "", n.fault(list, item, "the ID %q was made for an earlier item without one: choose another", id)
	}
	key := sumOf([]byte(id))
	if line, taken := n.lines[key]; taken {
		return "", n.fault(list, item, "the ID %q is that of line %d already: IDs are unique in a list; remove one of the two, or choose another field with --id-field", id, line)
	}
	n.lines[key] = int64(item.Line)
	return id, nil
}

func (n *identities) fault(list string, item *Item, format string, args ...any) *InputError {
	return &InputError{List: list, Line: item.Line, Column: item.Column, Code: nixie.CodeInvalid, Text: fmt.Sprintf(format, args...)}
}

// content makes an ID from a body.
func (n *identities) content(body []byte) string {
	key := sumOf(body)
	ordinal := n.bodies[key]
	n.bodies[key] = ordinal + 1
	return contentPrefix + hex.EncodeToString(key[:]) + "-" + strconv.FormatInt(ordinal, 10)
}

// made reports whether content gave this ID out.
func (n *identities) made(id string) bool {
	digits, ok := strings.CutPrefix(id, contentPrefix)
	if !ok || len(n.bodies) == 0 {
		return false
	}
	digits, ordinal, _ := strings.Cut(digits, "-")
	var key sum
	if len(digits) != hex.EncodedLen(len(key)) || digits != strings.ToLower(digits) {
		return false
	}
	if _, err := hex.Decode(key[:], []byte(digits)); err != nil {
		return false
	}
	count, err := strconv.ParseInt(ordinal, 10, 64)
	return err == nil && strconv.FormatInt(count, 10) == ordinal && count >= 0 && count < n.bodies[key]
}

// headBytes is how much of a line is in its name, if it cannot be the name: the
// rest is for the number, and each byte may be written as four.
const headBytes = 55

// called is the name of an item.
func (i *Item) called() string {
	if !i.plain || i.ID == "" {
		return i.ID
	}
	text := string(i.Body)
	first := strings.HasSuffix(i.ID, firstOrdinal)
	if first && strings.TrimSpace(text) != "" && nixie.CheckName("line", text) == nil {
		return text
	}
	head, rest := i.Body, ""
	if len(head) > headBytes {
		end := headBytes
		for end > headBytes-utf8.UTFMax && !utf8.RuneStart(head[end]) {
			end--
		}
		head, rest = head[:end], "…"
	}
	return fmt.Sprintf("line %d: %s%s", i.Line, visible(head), rest)
}

func kind(first byte) string {
	switch first {
	case '{':
		return "an object"
	case '[':
		return "an array"
	}
	return "true or false"
}
