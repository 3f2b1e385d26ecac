package arch

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Violation is a finding: the tree differs from the plan or breaks a rule.
type Violation struct {
	Rule  string // short name, stable
	Where string // file and line, or a package
	Text  string // what is there, and why it must not be
}

func (v Violation) String() string { return v.Where + ": " + v.Rule + ": " + v.Text }

// Tree is the source of a module, parsed.
type Tree struct {
	fset     *token.FileSet
	packages []*pkg            // by path
	texts    map[string][]byte // every text file by name
	found    []Violation
}

// pkg is one folder with Go files.
type pkg struct {
	path  string // below the module; "." is the root package
	room  room
	known bool // room is set
	files []*file
}

// file is one Go file.
type file struct {
	name   string // below the root of the tree
	test   bool
	syntax *ast.File
	lines  int
}

// maxTextBytes bounds the files that are searched for words.
const maxTextBytes = 4 << 20

// skippedFolders hold nothing that is written by hand.
var skippedFolders = []string{".git", "bin", "dist", "vendor", "node_modules"}

// Load parses every Go file below the root of fsys, with any build constraints, except testdata,
// and keeps every text file.
func Load(fsys fs.FS) (*Tree, error) {
	t := &Tree{fset: token.NewFileSet(), texts: map[string][]byte{}}
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains(skippedFolders, path.Base(name)):
			return fs.SkipDir
		case !entry.Type().IsRegular() || path.Base(name) == ".git":
			return nil
		}
		return t.read(fsys, name)
	})
	if err != nil {
		return nil, fmt.Errorf("read the source tree: %w", err)
	}
	slices.SortFunc(t.packages, func(a, b *pkg) int { return strings.Compare(a.path, b.path) })
	return t, nil
}

func (t *Tree) read(fsys fs.FS, name string) error {
	info, err := fs.Stat(fsys, name)
	if err != nil || info.Size() > maxTextBytes {
		return err
	}
	data, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	if bytes.IndexByte(data, 0) < 0 {
		t.texts[name] = data
	}
	if !strings.HasSuffix(name, ".go") || inTestdata(name) {
		return nil
	}
	syntax, err := parser.ParseFile(t.fset, name, data, parser.ParseComments)
	if err != nil {
		return err
	}
	p := t.packageAt(path.Dir(name))
	p.files = append(p.files, &file{
		name:   name,
		test:   strings.HasSuffix(name, "_test.go"),
		syntax: syntax,
		lines:  bytes.Count(data, []byte("\n")),
	})
	return nil
}

func (t *Tree) packageAt(folder string) *pkg {
	for _, p := range t.packages {
		if p.path == folder {
			return p
		}
	}
	p := &pkg{path: folder}
	p.room, p.known = roomOf(folder)
	t.packages = append(t.packages, p)
	return p
}

func inTestdata(name string) bool { return slices.Contains(strings.Split(name, "/"), "testdata") }

// shipped reports whether f is part of what users get.
func (p *pkg) shipped(f *file) bool { return !f.test && p.room.kind != proof }

// where is the file and line of a node.
func (t *Tree) where(n ast.Node) string {
	pos := t.fset.Position(n.Pos())
	return pos.Filename + ":" + strconv.Itoa(pos.Line)
}

// importPath is the path that an import names.
func importPath(spec *ast.ImportSpec) string {
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return spec.Path.Value
	}
	return p
}

// matches reports whether one of the patterns stands for s.
func matches(patterns []string, s string) bool {
	for _, p := range patterns {
		above, below := strings.CutSuffix(p, "/...")
		if p == s || below && (s == above || strings.HasPrefix(s, above+"/")) {
			return true
		}
	}
	return false
}

// inside returns the path below the module that an import path means.
func inside(importPath string) (string, bool) {
	if importPath == Module {
		return ".", true
	}
	return strings.CutPrefix(importPath, Module+"/")
}

// isStandard reports whether an import path is of the standard library, whose
// paths have no dot in the first element.
func isStandard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}
