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

// contentPrefix begins the ID of an item without one of its own.
const contentPrefix = "sha256-"

// firstOrdinal ends the ID of the first item with its bytes.
const firstOrdinal = "-0"

// sum is the first half of a SHA-256. Equal sums count as equal texts. Among 10 million items the
// chance of a collision is below 1 in 10^24; finding one on purpose takes 2^64 tries. A collision
// would lose nothing: the list would be refused for two equal IDs, or two bodies would get
// different ordinals.
type sum [16]byte

func sumOf(text []byte) sum {
	whole := sha256.Sum256(text)
	return sum(whole[:16])
}

// identities makes the IDs of items and remembers them.
type identities struct {
	field  string
	lines  map[sum]int64 // by ID from the field: its line
	bodies map[sum]int64 // by body of items without an ID: their number
}

func newIdentities(field string) *identities {
	return &identities{field: field, lines: make(map[sum]int64), bodies: make(map[sum]int64)}
}

// idOf returns the ID of an item.
func (n *identities) idOf(list string, item *Item) (string, *InputError) {
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
			return "", n.fault(list, item, "the ID field %q is %s: want a string or number, or choose another field with --id-field",
				n.field, jsonType(value[0]))
		}
	}
	if !given {
		id = n.contentID(item.Body)
		if len(n.lines) > 0 {
			if line, taken := n.lines[sumOf([]byte(id))]; taken {
				return "", n.fault(list, item, "line %d has the ID %q, which this item without one would get: choose another there", line,
					id)
			}
		}
		return id, nil
	}
	if id == "" {
		return "", n.fault(list, item, "the ID field %q is empty: give 1 to %d bytes, or choose another field with --id-field", n.field,
			nixie.MaxName)
	}
	if err := nixie.CheckName("the ID", id); err != nil {
		return "", n.fault(list, item, "%v; or choose another field with --id-field", err)
	}
	if n.isContentID(id) {
		return "", n.fault(list, item, "the ID %q was made for an earlier item without one: choose another", id)
	}
	key := sumOf([]byte(id))
	if line, taken := n.lines[key]; taken {
		return "", n.fault(list, item,
			"line %d has the ID %q already: IDs are unique in a list; remove one of the two, or choose another field with --id-field", line,
			id)
	}
	n.lines[key] = int64(item.Line)
	return id, nil
}

func (n *identities) fault(list string, item *Item, format string, args ...any) *InputError {
	return &InputError{List: list, Line: item.Line, Column: item.Column, Code: nixie.CodeInvalid, Text: fmt.Sprintf(format, args...)}
}

// contentID makes an ID from a body.
func (n *identities) contentID(body []byte) string {
	key := sumOf(body)
	ordinal := n.bodies[key]
	n.bodies[key] = ordinal + 1
	return contentPrefix + hex.EncodeToString(key[:]) + "-" + strconv.FormatInt(ordinal, 10)
}

// isContentID reports whether contentID made this ID.
func (n *identities) isContentID(id string) bool {
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

// headBytes is the number of bytes of a line that its name shows when the line cannot be the name.
// The rest of the name is for the number, and each byte may be written as four.
const headBytes = 55

// displayName returns the name of an item.
func (i *Item) displayName() string {
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

func jsonType(first byte) string {
	switch first {
	case '{':
		return "an object"
	case '[':
		return "an array"
	}
	return "true or false"
}
