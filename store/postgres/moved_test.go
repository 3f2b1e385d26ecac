package postgres

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"io"
	"regexp"
	"strings"
	"testing"
)

// before has all statements that the store sent while its tests ran, before the statements moved to
// files.
//
//go:embed testdata/sent.gz
var before []byte

// TestMoved compares the statements of the folder sql, assembled, with those that were sent before.
func TestMoved(t *testing.T) {
	z, err := gzip.NewReader(bytes.NewReader(before))
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	sent := strings.Split(string(data), "\n")
	all := map[string]bool{}
	for _, text := range sent {
		all[text] = true
	}
	// What is a part of others in Go, and so was not sent alone.
	within := map[string]string{
		"keys_to_adopt": "read_keys", "keys_to_move": "read_keys",
		"streams_of_holders": "read_streams", "streams_to_move": "read_streams", "streams_to_resolve": "read_streams",
	}
	hole := regexp.MustCompile(`\\\{[a-z]+\\\}`)
	for name, text := range texts {
		f := files(t)[name]
		switch {
		case f.Part:
			continue
		case strings.HasPrefix(name, "check_"):
			text = "select * from (" + text + ") v limit $1"
		case within[name] != "":
			whole := texts[within[name]]
			text = strings.NewReplacer("{streams}", text, "{keys}", text).Replace(whole)
		}
		text = normal(text)
		if len(f.Fill) == 0 {
			if !all[text] {
				t.Errorf("%s was not sent before:\n%s", name, text)
			}
			continue
		}
		pattern := regexp.MustCompile("^" + strings.ReplaceAll(hole.ReplaceAllString(strings.ReplaceAll(regexp.QuoteMeta(text), `\{schema\}`, "SCHEMA"), ".*"), "SCHEMA", `\{schema\}`) + "$")
		found := false
		for _, s := range sent {
			found = found || pattern.MatchString(s)
		}
		if !found {
			t.Errorf("nothing like %s was sent before:\n%s", name, text)
		}
	}
}

// normal is a statement without the white space that means nothing.
func normal(text string) string {
	text = regexp.MustCompile(`\s+`).ReplaceAllString(text, " ")
	return strings.TrimSpace(strings.NewReplacer("( ", "(", " )", ")").Replace(text))
}
