package console

import (
	"bytes"
	"encoding/json"
)

// Bounds of a tree. What is beyond is left out, and the tree says so.
const (
	maxNodes = 2_000
	maxDepth = 32
	openTo   = 2 // levels that are unfolded
)

// node is a value of JSON: a token, or values by their names or numbers. Names and tokens are those
// of the body, byte by byte: a value that is read and written again may be another one, as half a
// surrogate pair, a name that comes twice and the digits of a large number are.
type node struct {
	Name  string // with its quotes; "" in a list
	Token string // "" if there are values
	Kind  string // { or [ or ""
	Open  bool
	Comma bool // another value follows
	Cut   bool // more values are left out
	Nodes []node
}

// End is the bracket behind the values.
func (n node) End() string {
	if n.Kind == "{" {
		return "}"
	}
	return "]"
}

// tree reads valid JSON.
func tree(text []byte) node {
	var compact bytes.Buffer
	_ = json.Compact(&compact, text) // it is valid
	t := treeReader{compact.Bytes(), maxNodes}
	return t.value(0)
}

// treeReader reads valid JSON without spaces between its tokens.
type treeReader struct {
	text []byte // that is not read yet
	left int    // nodes that may follow
}

// next takes n bytes.
func (t *treeReader) next(n int) string {
	token := string(t.text[:n])
	t.text = t.text[n:]
	return token
}

// token takes a text with its quotes, a number or a word.
func (t *treeReader) token() string {
	if t.text[0] != '"' {
		end := bytes.IndexAny(t.text, ",}]")
		if end < 0 {
			end = len(t.text)
		}
		return t.next(end)
	}
	end := 1
	for ; t.text[end] != '"'; end++ {
		if t.text[end] == '\\' {
			end++
		}
	}
	return t.next(end + 1)
}

func (t *treeReader) value(depth int) node {
	if kind := t.text[0]; kind != '{' && kind != '[' {
		return node{Token: t.token()}
	}
	if end := t.text[1]; end == '}' || end == ']' {
		return node{Token: t.next(2)}
	}
	n := node{Kind: t.next(1), Open: depth < openTo}
	for {
		name := ""
		if n.Kind == "{" {
			name = t.token()
			t.next(1) // the colon
		}
		t.left--
		if n.Cut = n.Cut || t.left < 0 || depth >= maxDepth; n.Cut {
			t.pass()
		} else {
			value := t.value(depth + 1)
			value.Name = name
			n.Nodes = append(n.Nodes, value)
		}
		if t.next(1) != "," { // but the end
			break
		}
	}
	for i := range len(n.Nodes) - 1 {
		n.Nodes[i].Comma = true
	}
	return n
}

// pass skips a value, however deep it is.
func (t *treeReader) pass() {
	for depth := 0; ; {
		switch t.text[0] {
		case '{', '[':
			depth++
			t.next(1)
		case '}', ']':
			depth--
			t.next(1)
		case ',', ':':
			t.next(1)
		default:
			t.token()
		}
		if depth == 0 {
			return
		}
	}
}
