package browser

import (
	"archive/zip"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/nixie-go/nixie/internal/proof/testservers"
)

// Axe returns the source of axe-core, which finds barriers in a page. Where there is none the test
// is skipped, or fails.
func Axe(t testing.TB) string {
	t.Helper()
	jar, err := zip.OpenReader(testservers.Program(t, testservers.Axe))
	if err != nil {
		t.Fatal(err)
	}
	defer jar.Close() //nolint:errcheck // it was only read
	for _, f := range jar.File {
		if !strings.HasSuffix(f.Name, "/axe.min.js") {
			continue
		}
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close() //nolint:errcheck // likewise
		source, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(source)
	}
	t.Fatal("axe.min.js is not in the archive of axe-core")
	return ""
}

// Barrier is something that keeps people from using a page.
type Barrier struct {
	Rule, Impact, Help string
	At                 []string // the elements
}

func (b Barrier) String() string {
	return fmt.Sprintf("%s (%s): %s: %q", b.Rule, b.Impact, b.Help, b.At)
}

// Barriers are the serious and critical ones of a page.
type Barriers struct {
	Found []Barrier
	Kept  int // rules that the page keeps
}

// Barriers looks for barriers in the page, by the source of axe-core.
func (t *Tab) Barriers(axe string) Barriers {
	Ask[bool](t, axe+"\n;true")
	return Ask[Barriers](t, `axe.run(document, { resultTypes: ["violations"] }).then((r) => ({
		Found: r.violations.filter((v) => v.impact === "serious" || v.impact === "critical").map((v) =>
			({ Rule: v.id, Impact: v.impact, Help: v.help, At: v.nodes.slice(0, 5).map((n) => n.html.slice(0, 200)) })),
		Kept: r.passes.length }))`)
}
