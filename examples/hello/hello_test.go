package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/local"
	"github.com/nixie-go/nixie/nixietest"
	"github.com/nixie-go/nixie/store"
)

func TestHelloDiesOfAFolder(t *testing.T) {
	h := nixie.Routes(hello.Handle(greet))
	got := nixietest.Run(t, h, nixietest.Message(t, hello, t.TempDir()))
	if got[0].Letter == nil || got[0].Attempts != 1 {
		t.Errorf("%s after %d attempts", got[0].State, got[0].Attempts)
	}
}

// TestHello runs the program twice. The second time it cannot write, and leaves a letter.
func TestHello(t *testing.T) {
	t.Chdir(t.TempDir())
	main()
	if said, err := os.ReadFile("hello.txt"); err != nil || string(said) != "hello\n" {
		t.Fatalf("%q, %v", said, err)
	}
	if err := os.Rename("hello.txt", "said.txt"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir("hello.txt", 0o700); err != nil {
		t.Fatal(err)
	}
	main()
	queue, err := local.Open("hello.db")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = queue.Close() }()
	letters, _, err := queue.Store.Letters(t.Context(), nixie.Filter{}, store.Page{})
	if err != nil || len(letters) != 1 {
		t.Errorf("%d letters, %v", len(letters), err)
	}
}

// TestHelloIsSmall counts what a newcomer reads: the program with its imports of ours, and the test
// of its handler.
func TestHelloIsSmall(t *testing.T) {
	text, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	if lines, ours := bytes.Count(text, []byte("\n")), strings.Count(string(text), `"github.com/nixie-go/nixie`); lines > 30 || ours > 2 {
		t.Errorf("the program has %d lines and %d imports of ours", lines, ours)
	}
	fset := token.NewFileSet()
	tests, err := parser.ParseFile(fset, "hello_test.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	of := tests.Scope.Lookup("TestHelloDiesOfAFolder").Decl.(*ast.FuncDecl)
	if lines := fset.Position(of.End()).Line - fset.Position(of.Pos()).Line + 1; lines > 12 {
		t.Errorf("the test of the handler has %d lines", lines)
	}
}
