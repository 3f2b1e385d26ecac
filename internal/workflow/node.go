package workflow

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds of a file.
const (
	MaxSize  = 1 << 20 // bytes
	maxDepth = 60      // lists and keys within each other
	maxNodes = 50_000  // values, those of aliases included
)

// Position says where something is in a file. Both numbers begin at 1.
type Position struct{ Line, Column int }

// node is a value of the file, its aliases replaced.
type node struct {
	at    Position
	kind  kind
	text  string // of a scalar
	first int    // line on which the text begins; 0 if its lines are not those of the file
	pairs []pair // of keys with values
	list  []*node
}

type kind int8

const (
	nothing kind = iota
	text
	number
	boolean
	list
	keys
)

func (k kind) String() string {
	return [...]string{"nothing", "a text", "a number", "true or false", "a list", "keys with values"}[k]
}

type pair struct {
	name  string
	at    Position
	value *node
}

// lineAt returns the line of a byte of the text.
func (n *node) lineAt(at int) int {
	if n.first == 0 {
		return n.at.Line
	}
	return n.first + strings.Count(n.text[:min(at, len(n.text))], "\n")
}

// yamlReader makes nodes.
type yamlReader struct {
	anchors map[string]ast.Node
	open    []string // aliases that are being replaced
	nodes   int
}

// placed is an error that knows where it is.
type placed struct {
	at  Position
	err error
}

func (p *placed) Error() string { return p.err.Error() }

func wrongAt(at Position, format string, args ...any) error {
	return &placed{at, fmt.Errorf(format, args...)}
}

// readYAML reads the one document of a text; nil is none. An error is a *placed.
func readYAML(source []byte) (*node, error) {
	if len(source) > MaxSize {
		return nil, wrongAt(Position{1, 1}, "the file has %d bytes, the limit is %d", len(source), MaxSize)
	}
	tokens := lexer.Tokenize(string(source))
	if err := checkDepth(tokens); err != nil {
		return nil, err
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		return nil, noYAML(err)
	}
	r := &yamlReader{anchors: map[string]ast.Node{}}
	var found *node
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue // empty, or comments only
		}
		if _, is := doc.Body.(*ast.DirectiveNode); is {
			return nil, wrongAt(positionOf(doc.Body), "a directive of YAML: leave the line out")
		}
		if found != nil {
			return nil, wrongAt(positionOf(doc.Body), "a second document: keep one in a file")
		}
		if found, err = r.read(doc.Body, 0); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// noYAML makes the error of a text that is no YAML.
func noYAML(err error) error {
	var wrong yaml.Error
	if !errors.As(err, &wrong) || wrong.GetToken() == nil {
		return wrongAt(Position{1, 1}, "this is no YAML: %s", firstLine(err.Error()))
	}
	at, found := positionOfToken(wrong.GetToken()), firstLine(wrong.GetMessage())
	if strings.Contains(found, `'	'`) {
		return wrongAt(at, "a tab cannot begin a value: YAML is indented with spaces")
	}
	return wrongAt(at, "this is no YAML: %s", found)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// checkDepth refuses a text that nests too deep for a reader that calls itself.
func checkDepth(tokens token.Tokens) error {
	open, row, line := 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != line {
			line, row = t.Position.Line, 0
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			open++
		case token.SequenceEndType, token.MappingEndType:
			open--
		case token.SequenceEntryType, token.MappingKeyType, token.MappingValueType, token.TagType, token.AnchorType:
			row++ // those in one line may be within each other
		}
		if open > maxDepth || t.Position.IndentLevel > maxDepth || open == 0 && row > maxDepth {
			return wrongAt(positionOfToken(t), "it nests deeper than %d", maxDepth)
		}
	}
	return nil
}

func positionOfToken(t *token.Token) Position {
	return Position{max(t.Position.Line, 1), max(t.Position.Column, 1)}
}

// positionOf returns the position at which a node begins.
func positionOf(n ast.Node) Position {
	switch n := n.(type) {
	case *ast.MappingNode:
		if len(n.Values) > 0 && n.Start != nil && n.Start.Type != token.MappingStartType {
			return positionOf(n.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return positionOf(n.Key)
	}
	if n.GetToken() == nil {
		return Position{1, 1}
	}
	return positionOfToken(n.GetToken())
}

// read makes a node.
func (r *yamlReader) read(n ast.Node, depth int) (*node, error) {
	at := positionOf(n)
	if r.nodes++; r.nodes > maxNodes {
		return nil, wrongAt(at, "the file has more than %d values, those of aliases included", maxNodes)
	}
	if depth > maxDepth {
		return nil, wrongAt(at, "it nests deeper than %d", maxDepth)
	}
	switch n := n.(type) {
	case *ast.NullNode:
		return &node{at: at}, nil
	case *ast.StringNode:
		first := at.Line
		if strings.Contains(n.Value, "\n") {
			first = 0
		}
		return &node{at: at, kind: text, text: n.Value, first: first}, nil
	case *ast.LiteralNode:
		first := 0
		if strings.HasPrefix(n.Start.Value, "|") {
			first = at.Line + 1
		}
		return &node{at: at, kind: text, text: n.Value.Value, first: first}, nil
	case *ast.IntegerNode, *ast.FloatNode:
		return &node{at: at, kind: number, text: n.GetToken().Value, first: at.Line}, nil
	case *ast.BoolNode:
		return &node{at: at, kind: boolean, text: cmp.Or(map[bool]string{true: "true"}[n.Value], "false"), first: at.Line}, nil
	case *ast.SequenceNode:
		made := &node{at: at, kind: list}
		for _, value := range n.Values {
			item, err := r.read(value, depth+1)
			if err != nil {
				return nil, err
			}
			made.list = append(made.list, item)
		}
		return made, nil
	case *ast.MappingNode:
		return r.readPairs(at, n.Values, depth)
	case *ast.MappingValueNode:
		return r.readPairs(at, []*ast.MappingValueNode{n}, depth)
	case *ast.AnchorNode:
		r.anchors[n.Name.String()] = n.Value
		name := n.Name.String()
		r.open = append(r.open, name)
		defer func() { r.open = r.open[:len(r.open)-1] }()
		return r.read(n.Value, depth+1)
	case *ast.AliasNode:
		return r.alias(n, at, depth)
	case *ast.TagNode:
		return nil, wrongAt(at, "the tag %s: a file has texts, numbers, true and false, lists and keys, without tags", n.GetToken().Value)
	}
	return nil, wrongAt(at, "%s is no value here: put it in quotes", n.Type())
}

// alias reads what an alias names once more.
func (r *yamlReader) alias(n *ast.AliasNode, at Position, depth int) (*node, error) {
	name := n.Value.String()
	value, known := r.anchors[name]
	switch {
	case !known:
		return nil, wrongAt(at, "*%s names no anchor: write &%s before the value that it repeats", name, name)
	case contains(r.open, name):
		return nil, wrongAt(at, "*%s is within &%s, so it would have no end", name, name)
	}
	r.open = append(r.open, name)
	defer func() { r.open = r.open[:len(r.open)-1] }()
	return r.read(value, depth+1)
}

func contains(all []string, one string) bool {
	for _, s := range all {
		if s == one {
			return true
		}
	}
	return false
}

// readPairs reads keys with their values.
func (r *yamlReader) readPairs(at Position, values []*ast.MappingValueNode, depth int) (*node, error) {
	made, seen := &node{at: at, kind: keys}, map[string]Position{}
	for _, value := range values {
		where := positionOf(value.Key)
		var name string
		switch key := value.Key.(type) {
		case *ast.MergeKeyNode:
			return nil, wrongAt(where, "<< merges keys: write them out")
		case *ast.StringNode:
			name = key.Value
		case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode:
			name = key.GetToken().Value
		default:
			return nil, wrongAt(where, "%s is no key: write a name", value.Key.String())
		}
		if before, twice := seen[name]; twice {
			return nil, wrongAt(where, "%s is given twice, first on line %d", name, before.Line)
		}
		seen[name] = where
		inner, err := r.read(value.Value, depth+1)
		if err != nil {
			return nil, err
		}
		if inner.kind == nothing {
			inner.at = where
		}
		made.pairs = append(made.pairs, pair{name, where, inner})
	}
	return made, nil
}
