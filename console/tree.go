package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// Bounds of a tree. What is beyond is left out, and the tree says so.
const (
	maxNodes = 2_000
	maxDepth = 32
	openTo   = 2 // levels that are unfolded
)

// node is a value of JSON: a text, or values by their names or numbers.
type node struct {
	Name  string
	Text  string // as in JSON; "" if there are values
	Kind  string // { or [ or ""
	Open  bool
	Cut   bool // more values are left out
	Nodes []node
}

var errNoTree = errors.New("it is not one value of JSON")

// tree reads a text as JSON, with its names in their order.
func tree(text []byte) (node, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	left := maxNodes
	root, err := readNode(d, 0, &left)
	if err != nil {
		return root, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return root, errNoTree
	}
	return root, nil
}

func readNode(d *json.Decoder, depth int, left *int) (n node, err error) {
	token, err := d.Token()
	if err != nil {
		return n, err
	}
	delim, ok := token.(json.Delim)
	if !ok {
		text, err := json.Marshal(token)
		n.Text = string(text)
		return n, err
	}
	n.Kind, n.Open = delim.String(), depth < openTo
	for d.More() {
		name := ""
		if n.Kind == "{" {
			if token, err = d.Token(); err != nil {
				return n, err
			}
			name, _ = token.(string)
		}
		*left--
		if n.Cut = n.Cut || *left < 0 || depth >= maxDepth; n.Cut {
			var skipped json.RawMessage
			if err := d.Decode(&skipped); err != nil {
				return n, err
			}
			continue
		}
		value, err := readNode(d, depth+1, left)
		if err != nil {
			return n, err
		}
		value.Name = name
		n.Nodes = append(n.Nodes, value)
	}
	_, err = d.Token() // the end
	return n, err
}
