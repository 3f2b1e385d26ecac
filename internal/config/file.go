package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/spelling"
)

// parse reads a configuration: the texts by their keys. An error names the file, line and column.
func parse(path string, text []byte) (map[string]string, error) {
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		var wrong yaml.Error
		if errors.As(err, &wrong) && wrong.GetToken() != nil {
			at := wrong.GetToken().Position
			return nil, wrongAt(path, at.Line, at.Column, noYAML(wrong.GetMessage()))
		}
		return nil, nixie.Errorf(nixie.CodeInvalid, "%s: %s", path, noYAML(err.Error()))
	}
	r := &reader{path: path, found: map[string]string{}}
	for i, doc := range file.Docs {
		if doc.Body == nil {
			continue // empty, or comments only
		}
		if i > 0 {
			return nil, r.wrong(doc.Body, "a second document: keep one")
		}
		if err := r.level("", doc.Body); err != nil {
			return nil, err
		}
	}
	return r.found, nil
}

// noYAML says what to write where the text is no YAML, with what its reader found.
func noYAML(found string) string {
	if strings.Contains(found, `'	'`) || strings.Contains(found, "'\t'") {
		return "a tab cannot begin a value: YAML is indented with spaces"
	}
	return "this is no YAML: " + found + "; write lines such as listen: 127.0.0.1:8321, texts with other signs in quotes"
}

func wrongAt(path string, line, column int, what string) error {
	return nixie.Errorf(nixie.CodeInvalid, "%s, line %d, column %d: %s", path, line, column, what)
}

// reader collects the values of a file.
type reader struct {
	path  string
	found map[string]string
}

func (r *reader) wrong(at ast.Node, format string, args ...any) error {
	position := at.GetToken().Position
	return wrongAt(r.path, position.Line, position.Column, fmt.Sprintf(format, args...))
}

// level reads the keys below a key.
func (r *reader) level(above string, node ast.Node) error {
	var pairs []*ast.MappingValueNode
	switch node := node.(type) {
	case *ast.MappingNode:
		pairs = node.Values
	case *ast.MappingValueNode:
		pairs = []*ast.MappingValueNode{node}
	case *ast.NullNode:
		return nil
	default:
		return r.wrong(node, "%swant keys with values, as in listen: 127.0.0.1:8321", prefix(above))
	}
	for _, pair := range pairs {
		name, is := pair.Key.(*ast.StringNode)
		if !is {
			return r.wrong(pair.Key, "%s%q is no key: known are %s", prefix(above), pair.Key.String(), strings.Join(keys(), ", "))
		}
		if err := r.pair(strings.TrimPrefix(above+"."+name.Value, "."), pair); err != nil {
			return err
		}
	}
	return nil
}

// prefix begins an error about what is below a key.
func prefix(key string) string {
	if key == "" {
		return ""
	}
	return key + ": "
}

// pair reads one key and its value.
func (r *reader) pair(key string, pair *ast.MappingValueNode) error {
	if _, twice := r.found[key]; twice {
		return r.wrong(pair.Key, "%s is given twice", key)
	}
	if slices.ContainsFunc(settings, func(s setting) bool { return strings.HasPrefix(s.key, key+".") }) {
		return r.level(key, pair.Value)
	}
	for _, s := range settings {
		switch {
		case key == s.key && s.list:
			return r.texts(s, pair.Value)
		case key == s.key, s.file && key == s.key+ofFileKey:
			text, err := r.text(key, pair.Value)
			if err == nil && s.check != nil && text != "" {
				if wrong := s.check(text); wrong != nil {
					err = r.wrong(pair.Value, "%s: %v", key, wrong)
				}
			}
			r.found[key] = text
			return err
		}
	}
	return r.wrong(pair.Key, "key %q is unknown: did you mean %s? nixie config print lists all", key, spelling.Nearest(key, keys()))
}

// text reads a text. What YAML takes for a number or a date is one only in quotes.
func (r *reader) text(key string, node ast.Node) (string, error) {
	switch node := node.(type) {
	case *ast.StringNode:
		return node.Value, nil
	case *ast.LiteralNode:
		return node.Value.Value, nil
	case *ast.NullNode:
		return "", nil
	}
	for _, s := range settings {
		if s.key == key && s.check != nil {
			if err := s.check(node.String()); err != nil {
				return "", r.wrong(node, "%s: %v", key, err)
			}
		}
	}
	return "", r.wrong(node, "%s: want a text, this is %s: put it in quotes", key, kindOf(node))
}

// kindOf names what stands where a text is wanted.
func kindOf(node ast.Node) string {
	switch node.(type) {
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "a number"
	case *ast.BoolNode:
		return "true or false"
	case *ast.SequenceNode:
		return "a list"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "keys with values"
	}
	return "an anchor, alias or tag"
}

// texts reads a list of texts.
func (r *reader) texts(s setting, node ast.Node) error {
	key := s.key
	list, is := node.(*ast.SequenceNode)
	if !is {
		return r.wrong(node, "%s: want a list, as in %s: ['one', 'two']", key, key)
	}
	var lines []string
	for _, item := range list.Values {
		text, err := r.text(key, item)
		if err != nil {
			return err
		}
		if strings.ContainsAny(text, "\r\n") {
			return r.wrong(item, "%s: want one line", key)
		}
		if s.check != nil {
			if wrong := s.check(text); wrong != nil {
				return r.wrong(item, "%s: %v", key, wrong)
			}
		}
		lines = append(lines, text)
	}
	r.found[key] = strings.Join(lines, "\n")
	return nil
}

// keys lists the keys of a file.
func keys() []string {
	var list []string
	for _, s := range settings {
		list = append(list, s.key)
		if s.file {
			list = append(list, s.key+ofFileKey)
		}
	}
	return list
}
