package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// fenced makes a document; ~ stands for a back quote.
func fenced(text string) string { return strings.ReplaceAll(text, "~", "`") }

func TestPlay(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		differ     string // part of the difference
		err        string // part of the error
	}{
		{"fine", "# A\n~~~console\n$ echo a; echo b >&2\na\nb\n~~~\n", "", ""},
		{"not shown, not compared", "~~~sh\n$ echo a\n~~~", "", ""},
		{"wrong output", "~~~sh\n$ echo a\nb\n~~~", "shown:\nb\nwritten:\na", ""},
		{"line of the command", "x\n\n~~~sh\n$ true\n$ echo a\nb\n~~~", "line 5: $ echo a", ""},
		{"wildcard lines", "~~~sh\n$ echo a; echo b; echo c\na\n...\nc\n~~~", "", ""},
		{"wildcard text", "~~~sh\n$ echo took 31ms in all\ntook ... in all\n~~~", "", ""},
		{"wildcard is not everything", "~~~sh\n$ echo took 31ms in all\ntook ... at all\n~~~", "shown", ""},
		{"exit status hidden", "~~~sh\n$ exit 5\n~~~", "exit status 5", ""},
		{"exit status shown", "~~~sh\n$ exit 5\n$ echo $?\n5\n~~~", "", ""},
		{"wrong exit status shown", "~~~sh\n$ exit 5\n$ echo $?\n0\n~~~", "written:\n5", ""},
		{"folder carries over", "~~~sh\n$ mkdir x && cd x\n~~~\n~~~sh\n$ basename \"$(pwd)\"\nx\n~~~", "", ""},
		{"continued line", "~~~sh\n$ echo a \\\n>   b\na b\n~~~", "", ""},
		{"here document", "~~~sh\n$ cat >f <<'EOF'\n> one\n> EOF\n$ cat f\none\n~~~", "", ""},
		{"file of the document", "~~~json file=\"d/x.json\"\n{}\n~~~\n~~~sh\n$ cat d/x.json\n{}\n~~~", "", ""},
		{"program of ours", "~~~sh\n$ ours\nhello\n~~~", "", ""},
		{"no environment", "~~~sh\n$ echo \"[$SECRET]\"\n[]\n~~~", "", ""},
		{"not run", "~~~sh norun=\"needs a cluster\"\nrm everything\n~~~", "", ""},
		{"other language", "~~~go\nfunc main() {}\n~~~", "", ""},
		{"no prompt", "~~~sh\nls\n~~~", "", "norun"},
		{"no prompt in bash", "~~~bash\nls\n~~~", "", "norun"},
		{"no reason", "~~~sh norun=\"\"\nls\n~~~", "", "say why"},
		{"unknown attribute", "~~~sh skip=\"x\"\nls\n~~~", "", "unknown"},
		{"loose attribute", "~~~sh norun\nls\n~~~", "", "not of the form"},
		{"not closed", "~~~sh\n$ ls", "", "not closed"},
		{"unfinished command", "~~~sh\n$ cat <<EOF\n~~~", "", "not finished"},
		{"file outside", "~~~json file=\"../x\"\n~~~", "", "leaves the folder"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv("SECRET", "x")
			differ, err := play(t, fenced(tc.text))
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("error %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(differ, "\n")
			if !strings.Contains(got, tc.differ) || tc.differ == "" && got != "" {
				t.Errorf("differs by %q, want %q", got, tc.differ)
			}
		})
	}
}

func play(t *testing.T, text string) ([]string, error) {
	t.Helper()
	bin := t.TempDir()
	program := []byte("#!/bin/sh\necho hello\n")
	if err := os.WriteFile(filepath.Join(bin, "ours"), program, 0o700); err != nil {
		t.Fatal(err)
	}
	session, err := NewSession(t.TempDir(), bin)
	if err != nil {
		t.Fatal(err)
	}
	return session.Play(t.Context(), text)
}

func TestTranscribed(t *testing.T) {
	for text, want := range map[string]bool{
		"~~~sh\n$ ls\n~~~":               true,
		"~~~sh\nls\n~~~":                 true, // to be refused
		"~~~sh norun=\"why\"\n$ ls\n~~~": false,
		"plain":                          false,
	} {
		if got := Transcribed(fenced(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestMatches(t *testing.T) {
	for _, tc := range []struct {
		shown, output string
		want          bool
	}{
		{"a", "a\n", true},
		{"a", "a \r\n", true},
		{"a", "b", false},
		{"a", "a\nb", false},
		{"a\nb", "a", false},
		{"...", "", true},
		{"...", "a\nb", true},
		{"a\n...", "a", true},
		{"...\nb\n...\nb", "b\nx\nb\nc\nb", true},
		{"...\nb\n...\nc", "b\nx\nb", false},
		{"x...y...z", "x1y2z", true},
		{"x...y...z", "x1z", false},
		{"ab...ba", "aba", false},
	} {
		if got := Matches(tc.shown, tc.output); got != tc.want {
			t.Errorf("%q on %q: %v", tc.shown, tc.output, got)
		}
	}
}

func FuzzBlocks(f *testing.F) {
	f.Add("```sh norun=\"x\"\n$ ls\n```\n")
	f.Add("~~~console\n$ cat <<EOF\n> x\n> EOF\nout\n~~~")
	f.Add("```\n````\n```")
	f.Fuzz(func(t *testing.T, text string) {
		blocks, err := Blocks(text)
		if err != nil {
			return
		}
		for _, b := range blocks {
			if b.Line < 1 || b.Line > strings.Count(text, "\n")+1 || !strings.Contains(text, b.Text) {
				t.Errorf("%+v is not in %q", b, text)
			}
			commands, err := b.Commands()
			if err == nil && b.NoRun != "" && len(commands) > 0 {
				t.Errorf("%+v is run", b)
			}
		}
	})
}

func FuzzMatches(f *testing.F) {
	f.Add("a\n...\nb...c")
	f.Fuzz(func(t *testing.T, text string) {
		if !Matches(text, text) {
			t.Errorf("%q does not match itself", text)
		}
	})
}

func TestBroken(t *testing.T) {
	fsys := fstest.MapFS{
		"docs/a.md": {Data: []byte(fenced("# Two words, `code`\n## Same\n## Same\n<a id=\"here\"></a>\n~~~\n# no heading\n~~~\n"))},
		"README.md": {Data: []byte("# [Linked](x) title\n")},
		"main.go":   {},
	}
	for target, why := range map[string]string{
		"../README.md":              "",
		"../main.go":                "",
		"../main.go#L3":             "",
		"#two-words-code":           "",
		"a.md#same-1":               "",
		"#here":                     "",
		"../README.md#linked-title": "",
		"..":                        "",
		"b.md":                      "there is no docs/b.md",
		"#no-heading":               "no heading",
		"a.md#same-2":               "no heading",
		"../../x":                   "leaves the repository",
		"/README.md":                "leaves the repository",
	} {
		got := Broken(fsys, "docs/a.md", Link{1, target})
		if !strings.Contains(got, why) || why == "" && got != "" {
			t.Errorf("%s: %q, want %q", target, got, why)
		}
	}
}

func TestLinksOfText(t *testing.T) {
	text := fenced("[a](b.md) ![i](<c.png> \"t\") ~[no](no.md)~\n[w](https://example.com) [m](mailto:a@b)\n[ref]: " +
		"d.md#x\n~~~\n[no](no.md)\n~~~\n<img src=\"e.svg\">")
	var got []string
	for _, l := range Links(text) {
		got = append(got, l.Target)
	}
	if want := "b.md c.png d.md#x e.svg"; strings.Join(got, " ") != want {
		t.Errorf("%v, want %s", got, want)
	}
}
