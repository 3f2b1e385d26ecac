package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
)

// A word of a text that is a value of the item itself differs from message to message, also if
// it looks like any other word.

// aField stands for a word that is a value of the body.
const aField = "<field>"

// Limits of the body and of the words that are looked for in it.
const (
	maxBody       = 64 << 10 // bytes
	maxBodyValues = 1_000
	minField      = 3  // bytes of a value
	maxField      = 64 // bytes of a value
	maxWanted     = 64 // words of a text that are looked for
)

// fields looks for words in a body of JSON. It parses the body once a word may be in it.
type fields struct {
	body   []byte
	wanted []string // the words that were looked for
	values map[string]bool
}

// newFields returns what looks for words in a body, or nil for a body that is no JSON object or
// array, or too long.
func newFields(body []byte) *fields {
	start := bytes.TrimLeft(body[:min(len(body), maxBody)], " \t\r\n")
	if len(body) > maxBody || len(start) == 0 || start[0] != '{' && start[0] != '[' {
		return nil
	}
	return &fields{body: body}
}

// mayHave reports whether one of words could be a value of a body. A no is certain.
func mayHave(body []byte, words []string) bool {
	if len(words) > 0 && bytes.IndexByte(body, '\\') >= 0 { // a value may be written otherwise
		return true
	}
	for _, word := range words {
		if bytes.Contains(body, []byte(word)) {
			return true
		}
	}
	return false
}

// has reports whether a word is a value of the body. Numbers and paths are none: they are replaced
// anyway, and one that is a value by chance, or is too long for one, would make another group.
func (f *fields) has(word string) bool {
	if len(word) < minField || len(word) > maxField || len(f.wanted) == maxWanted || isCommon(word) || strings.Contains(word, "://") ||
		strings.Trim(word, "0123456789") == "" || isPath(word) {
		return false
	}
	f.wanted = append(f.wanted, word)
	if f.values == nil {
		if !mayHave(f.body, f.wanted[len(f.wanted)-1:]) {
			return false
		}
		f.values = valuesOf(f.body)
	}
	return f.values[word]
}

// valuesOf returns the strings and numbers of a JSON document, at any depth. A document that breaks
// off has those before; one that is no JSON has none.
func valuesOf(body []byte) map[string]bool {
	values := map[string]bool{}
	in := json.NewDecoder(bytes.NewReader(body))
	in.UseNumber()
	var objects []bool // the open arrays and objects
	key := false       // the next string is one
	for len(values) < maxBodyValues {
		token, err := in.Token()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				return map[string]bool{}
			}
			break
		}
		inObject := len(objects) > 0 && objects[len(objects)-1]
		switch t := token.(type) {
		case json.Delim:
			if t == '{' || t == '[' {
				objects = append(objects, t == '{')
			} else {
				objects = objects[:len(objects)-1]
			}
			key = len(objects) > 0 && objects[len(objects)-1]
			continue
		case string:
			if !key {
				keepValue(values, t)
			}
		case json.Number:
			keepValue(values, t.String())
		}
		key = inObject && !key
	}
	return values
}

func keepValue(values map[string]bool, value string) {
	if len(value) >= minField && len(value) <= maxField {
		values[value] = true
	}
}

// isField reports whether the word that the text goes on with is a value of the body, and where it
// ends. What says what to repair is none.
func (n *normaliser) isField() (end int, is bool) {
	if n.fields == nil {
		return 0, false
	}
	rest := n.text[n.at:]
	for end < len(rest) && end <= maxField && !endsWord(rest[:end], rest[end:]) {
		end++
	}
	word := strings.TrimRight(rest[:end], ".!?")
	if word == "" || n.isCode(word, rest[end:]) || !n.fields.has(word) {
		return 0, false
	}
	return len(word), true
}

// isFieldText reports whether a quoted word is a value of the body.
func (n *normaliser) isFieldText(quoted string) bool {
	return n.fields != nil && !strings.ContainsFunc(quoted, isBlank) && n.fields.has(quoted)
}

// endsWord reports whether a word ends before rest. Test runners write a file and two colons.
func endsWord(word, rest string) bool {
	switch b := rest[0]; {
	case b <= ' ', strings.IndexByte("\"'`()[]{}<>,;=", b) >= 0:
		return true
	case b == ':':
		return len(rest) == 1 || rest[1] <= ' ' || isDigit(rune(rest[1])) || rest[1] == '(' ||
			rest[1] == ':' && strings.Contains(word, ".")
	}
	return false
}

// isCommon reports whether errors are made of a word, so that it says nothing of one item.
func isCommon(word string) bool { return commonWords()[strings.ToLower(word)] }

var commonWords = sync.OnceValue(func() map[string]bool {
	words := map[string]bool{}
	for word := range strings.FieldsSeq("" +
		"abort aborted accept access account active address after already amount and any api app application argument array " +
		"attempt auth authentication authorization available balance bank batch before body bucket buffer build busy call cancel " +
		"canceled cancelled cannot card cart cause certificate channel charge check class client close closed cluster code column " +
		"command commit complete completed config configuration conflict connect connection constraint container content copy " +
		"count create created credentials currency customer data database date dead deadline declined default delete deleted " +
		"delivery denied dependency deploy device disabled disk does done down duplicate email empty enabled end entity entry " +
		"error event exceeded exception execute exhausted exist exists exit expected expired failed failure false fatal fetch " +
		"field file first for forbidden format found from full function gateway get gone group handle handler has have header " +
		"host http https image import index info input insert instance insufficient internal invalid invoice item job json key " +
		"kind label last length limit line link list load local lock login lost mail main malformed match memory merge message " +
		"method missing module must name network new next none not null number object offline open operation option order output " +
		"page parameter parse password path payload payment pending permission phone plan policy port post price process " +
		"processing product profile protocol proxy query queue quota range rate read record refund refused region reject rejected " +
		"release remote remove report request required reset resource response result retry return role row rule run running " +
		"schema script search send server service session size socket source sql start state status step stopped storage stream " +
		"string subject success table target task tenant test that the this throttled ticket time timed timeout token too topic " +
		"transaction true type unable unauthorized unavailable undefined unexpected unknown unreachable unsupported update upload " +
		"url used user valid value version was webhook with without worker write wrong") {
		words[word] = true
	}
	return words
})
