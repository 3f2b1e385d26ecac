package cli

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/spf13/cobra"
)

// stories list everything that scripts and golden files show, by name, each with the files that
// show it.
type stories struct {
	root       *cobra.Command
	commands   map[string][]string            // "dlq list"
	flags      map[string][]string            // "dlq list --filter"
	everywhere map[string][]string            // "--store"
	fields     map[string]map[string][]string // of the JSON that a command printed: "history[].type"
	members    map[string][]string            // every name in any JSON or CSV header
	forms      map[string][]string            // "dlq list json": what a command printed is compared
}

// readStories reads all of testdata. Command lines that are refused as wrong
// show nothing.
func readStories(t *testing.T, root *cobra.Command) *stories {
	t.Helper()
	s := &stories{root, map[string][]string{}, map[string][]string{}, map[string][]string{}, map[string]map[string][]string{},
		map[string][]string{}, map[string][]string{}}
	if err := filepath.WalkDir("testdata", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		name := filepath.Base(path)
		switch filepath.Ext(path) {
		case ".txtar":
			s.script(name, txtar.Parse(data))
		case ".golden":
			s.golden(name, string(data))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return s
}

// golden reads commands with what they print: "$ nixie …", and the lines up to a
// blank one.
func (s *stories) golden(name, text string) {
	for block := range strings.SplitSeq(text, "\n\n") {
		_, block, found := strings.Cut("\n"+block, "\n$ nixie ")
		if line, output, _ := strings.Cut(block, "\n"); found {
			w := words(line)
			s.output(name, s.told(name, w), w, output)
		}
	}
}

// script reads a script: what its commands are, and which golden text each has
// to print.
func (s *stories) script(name string, archive *txtar.Archive) {
	golden := map[string]string{}
	for _, f := range archive.Files {
		golden[f.Name] = string(f.Data)
		if strings.Contains(filepath.Ext(f.Name), ".json") {
			s.output(name, "", nil, string(f.Data)) // what a command reads
		}
	}
	command, inBackground, given := "", "", []string(nil)
	for line := range strings.Lines(string(archive.Comment)) {
		w := words(line)
		switch {
		case len(w) > 2 && w[0] == "nixie" && w[1] != "2":
			command, given = s.told(name, w[2:]), w[2:]
		case len(w) > 3 && w[0] == "exits" && w[2] == "nixie" && w[1] != "2":
			command, given = s.told(name, w[3:]), w[3:]
		case len(w) > 2 && w[0] == "exec" && w[1] == "nixie":
			inBackground, given = s.told(name, w[2:]), w[2:]
		case len(w) > 0 && w[0] == "wait":
			command = inBackground
		case len(w) > 0 && (w[0] == "nixie" || w[0] == "exits" || w[0] == "exec" || w[0] == "get"):
			command = ""
			for _, quoted := range quotedName.FindAllStringSubmatch(line, -1) {
				show(s.members, quoted[1], name)
			}
		case len(w) == 3 && (w[0] == "cmp" || w[0] == "cmpenv") && w[1] == "stdout" && command != "":
			s.output(name, command, given, golden[w[2]])
		case len(w) == 2 && w[0] == "stdout" && command != "":
			show(s.forms, command+" "+formOf(given), name)
			for _, quoted := range quotedName.FindAllStringSubmatch(w[1], -1) {
				s.field(name, command, quoted[1])
			}
		}
	}
}

// quotedName is a member in a pattern for JSON.
var quotedName = regexp.MustCompile(`"([a-z0-9_]+)":`)

// words splits a line of a script: blanks part words, single quotes hold them
// together, # begins a comment.
func words(line string) []string {
	var list []string
	for i, part := range strings.Split(strings.TrimSpace(line), "'") {
		if i%2 == 1 {
			list = append(list, part)
			continue
		}
		for _, w := range strings.Fields(part) {
			if strings.HasPrefix(w, "#") {
				return list
			}
			list = append(list, w)
		}
	}
	return list
}

// told notes a command line, and returns the path of its command.
func (s *stories) told(name string, line []string) string {
	c, rest, err := s.root.Find(line)
	if err != nil {
		return ""
	}
	path := pathOf(c)
	if c != s.root {
		show(s.commands, path, name)
	}
	c.InheritedFlags() // merges them in
	for _, w := range rest {
		if w == "--" {
			break
		}
		flag, _, _ := strings.Cut(w, "=")
		f := c.Flags().Lookup(strings.TrimPrefix(flag, "--"))
		if len(flag) == 2 && flag[0] == '-' && flag[1] != '-' {
			f = c.Flags().ShorthandLookup(flag[1:])
		} else if !strings.HasPrefix(flag, "--") {
			continue
		}
		if f == nil {
			continue
		}
		show(s.flags, path+" --"+f.Name, name)
		show(s.everywhere, "--"+f.Name, name)
	}
	return path
}

// output notes the names in what a command printed.
func (s *stories) output(name, command string, given []string, text string) {
	show(s.forms, command+" "+formOf(given), name)
	decoder := json.NewDecoder(strings.NewReader(text))
	isJSON := false
	for {
		var v any
		if decoder.Decode(&v) != nil {
			break
		}
		if list, ok := v.([]any); ok {
			for _, element := range list {
				s.value(name, command, "", element)
			}
		} else {
			s.value(name, command, "", v)
		}
		isJSON = true
	}
	head, _, _ := strings.Cut(text, "\n")
	if !isJSON && strings.Contains(head, ",") {
		for _, member := range strings.Split(head, ",") {
			show(s.members, member, name)
		}
	}
}

// formOf is the format that a command line asks for.
func formOf(given []string) string {
	for i, w := range given {
		switch {
		case w == "--":
			return asTable
		case w == "-o" && i+1 < len(given):
			return given[i+1]
		}
	}
	return asTable
}

func (s *stories) value(name, command, path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for member, below := range v {
			s.field(name, command, strings.TrimPrefix(path+"."+member, "."))
			s.value(name, command, path+"."+member, below)
		}
	case []any:
		for _, below := range v {
			s.value(name, command, path+"[]", below)
		}
	}
}

func (s *stories) field(name, command, path string) {
	path = strings.TrimPrefix(path, ".")
	if s.fields[command] == nil {
		s.fields[command] = map[string][]string{}
	}
	show(s.fields[command], path, name)
	show(s.members, path[strings.LastIndexByte(path, '.')+1:], name)
}

func show(into map[string][]string, what, story string) {
	if !slices.Contains(into[what], story) {
		into[what] = append(into[what], story)
	}
}

// viewMembers are the JSON names in all structs of the packages whose values are
// printed, as package.Type.name.
func viewMembers(t *testing.T) []string {
	t.Helper()
	var list []string
	for _, folder := range [...]string{".", filepath.Join("..", "runner"), filepath.Join("..", "..", "office")} {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if spec, ok := n.(*ast.TypeSpec); ok {
					list = append(list, membersOf(file.Name.Name+"."+spec.Name.Name, spec)...)
				}
				return true
			})
		}
	}
	return list
}

func membersOf(prefix string, spec *ast.TypeSpec) (list []string) {
	body, ok := spec.Type.(*ast.StructType)
	if !ok {
		return nil
	}
	for _, f := range body.Fields.List {
		if f.Tag == nil {
			continue
		}
		tag, err := strconv.Unquote(f.Tag.Value)
		name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		if err == nil && name != "" && name != "-" {
			list = append(list, prefix+"."+name)
		}
	}
	return list
}
