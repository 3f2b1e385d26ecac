package sqlite

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nixie-go/nixie/internal/sqlfile"
)

// TestStatements prepares each file of the folder sql on the migrated schema, and compares what
// SQLite says about arguments and columns with the header.
func TestStatements(t *testing.T) {
	c, err := openConn("", "", true, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	list, err := ours()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := move(c, "memory", list, schemaVersion, false, nil); err != nil {
		t.Fatal(err)
	}
	all, err := sqlfile.Read(sqlFiles, "?")
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range all {
		text := f.Text
		if f.Part {
			text = f.Whole
		}
		st, _, err := c.PrepareTransient(text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i, in := range f.In {
			if !regexp.MustCompile(`\?` + strconv.Itoa(i+1) + `\b`).MatchString(text) {
				t.Errorf("%s: argument %s is not used", name, in)
			}
		}
		want := len(f.In)
		if strings.Contains(text, "?35") {
			want = 35 // it has the part positions
		}
		if got := st.BindParamCount(); !f.Part && got != want {
			t.Errorf("%s: %d arguments, and %d in the header", name, got, want)
		}
		if got, want := st.ColumnCount(), columnsOf(all, f.Out); got != want && (!f.Part || want > 0) {
			t.Errorf("%s: %d columns, and %d in the header", name, got, want)
		}
		_ = st.Finalize()
	}
}

// columnsOf counts columns. A part stands for its own.
func columnsOf(all map[string]sqlfile.File, names []string) (n int) {
	for _, name := range names {
		if of, known := all[name]; known && of.Part {
			n += columnsOf(all, of.Out)
		} else {
			n++
		}
	}
	return n
}

// TestRulesHaveStatements compares the rules of Check with the files that they name.
func TestRulesHaveStatements(t *testing.T) {
	all, err := sqlfile.Read(sqlFiles, "?")
	if err != nil {
		t.Fatal(err)
	}
	for name := range all {
		rule, is := strings.CutPrefix(name, "check_")
		if is && name != "check_bodies" && name != "check_chains" && !slices.Contains(rules[:], strings.ReplaceAll(rule, "_", "-")) {
			t.Errorf("no rule asks sql/%s.sql", name)
		}
	}
	for _, rule := range rules {
		if name := "check_" + strings.ReplaceAll(rule, "-", "_"); all[name].Text == "" {
			t.Errorf("there is no sql/%s.sql", name)
		}
	}
}
