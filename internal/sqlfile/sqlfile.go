// Package sqlfile reads SQL statements from files, one statement a file. A header says what the
// statement does, and names its arguments in the order in which Go gives them:
//
//	-- Leases one waiting message to a process.
//	-- in: owner — number of the process in the table owner
//	-- in: pos — position of the message
//	-- locks: the row of pending
//	-- out: number, attempts
//	update pending set owner = :owner where pos = :pos returning number, attempts
//
// A header line "-- fill: where — …" names what Go puts where the text has {where}: conditions of
// a filter, for example.
//
// A file whose first line begins with "-- Part:" is no statement: other files include it as
// {{name}}, and name its arguments in their own headers, or Go completes it. Its line "-- whole:"
// shows a statement with … in its position, so that a test can prepare it. The line of locks is
// for databases that lock rows.
package sqlfile

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// File is one file as read.
type File struct {
	Does, Locks string
	In, Out     []string // names of the arguments and of the columns
	Fill        []string // names of what Go fills in
	Part        bool
	Whole       string // a part as a whole statement
	Text        string // what the database gets: one line, arguments numbered, parts included
}

// Text returns a function that has the text of a file by its name without ".sql". An argument
// becomes mark and its number: ?1, $1. A file is read when it is first asked for, because a command
// needs few. The call panics at a mistake in a file, which a test of the caller has to find.
func Text(files fs.FS, mark string) func(name string) string {
	var known sync.Map // names of files, to their texts
	part := func(name string) (File, error) {
		data, err := fs.ReadFile(files, "sql/"+name+".sql")
		return parse(string(data)), err
	}
	return func(name string) string {
		if text, ok := known.Load(name); ok {
			return text.(string)
		}
		f, err := part(name)
		if err == nil {
			f.Text, err = fill(f.Text, mark, f.In, part)
		}
		if err != nil {
			panic(fmt.Errorf("sql/%s.sql: %w", name, err))
		}
		known.Store(name, f.Text)
		return f.Text
	}
}

// Read returns each file in the folder sql by its name without ".sql".
func Read(files fs.FS, mark string) (map[string]File, error) {
	names, err := fs.Glob(files, "sql/*.sql")
	if err != nil {
		return nil, err
	}
	all := make(map[string]File, len(names))
	for _, name := range names {
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		all[strings.TrimSuffix(path.Base(name), ".sql")] = parse(string(data))
	}
	part := func(name string) (File, error) {
		f, known := all[name]
		if !known {
			return File{}, fs.ErrNotExist
		}
		return f, nil
	}
	filled := make(map[string]File, len(all))
	for name, f := range all {
		if f.Text, err = fill(f.Text, mark, f.In, part); err != nil {
			return nil, fmt.Errorf("sql/%s.sql: %w", name, err)
		}
		f.Whole = strings.Replace(f.Whole, "…", f.Text, 1)
		filled[name] = f
	}
	return filled, nil
}

// parse splits a file into its header and its text on one line.
func parse(data string) (f File) {
	var text strings.Builder
	text.Grow(len(data))
	for line := range strings.Lines(data) {
		line = strings.TrimSpace(line)
		comment, is := strings.CutPrefix(line, "--")
		if !is {
			if text.Len() > 0 {
				text.WriteByte(' ')
			}
			text.WriteString(line)
			continue
		}
		key, value, _ := strings.Cut(strings.TrimSpace(comment), ": ")
		switch {
		case text.Len() > 0: // below the header
		case key == "in":
			names, _, _ := strings.Cut(value, " — ")
			f.In = append(f.In, strings.Split(names, ", ")...)
		case key == "fill":
			name, _, _ := strings.Cut(value, " ")
			f.Fill = append(f.Fill, name)
		case key == "out":
			f.Out = append(f.Out, strings.Split(strings.TrimSuffix(value, ","), ", ")...)
		case key == "locks":
			f.Locks = value
		case key == "whole":
			f.Whole = value
		default:
			f.Part = f.Part || f.Does == "" && key == "Part"
			f.Does = strings.TrimSpace(f.Does + comment)
		}
	}
	f.Text = strings.TrimSpace(text.String())
	return f
}

// fill includes parts and numbers arguments. What stands between quotes stays as it is.
func fill(text, mark string, in []string, part func(name string) (File, error)) (string, error) {
	var out strings.Builder
	out.Grow(len(text) + len(text)/2)
	for {
		special := strings.IndexAny(text, "':{-")
		if special < 0 {
			out.WriteString(text)
			return out.String(), nil
		}
		out.WriteString(text[:special])
		text = text[special:]
		with, n := text[:1], 1
		switch word := text[1 : 1+wordLen(text[1:])]; {
		case text[0] == '\'':
			n = 2 + strings.IndexByte(text[1:]+"'", '\'')
			with = text[:min(n, len(text))]
		case strings.HasPrefix(text, "::"):
			with, n = "::", 2
		case strings.HasPrefix(text, "--"):
			return "", fmt.Errorf("comment %q follows text: give it a line of its own", text)
		case strings.HasPrefix(text, "{{"):
			name, _, _ := strings.Cut(text[2:], "}}")
			included, err := part(name)
			if err != nil || !included.Part {
				return "", fmt.Errorf("there is no part %q", name)
			}
			if with, err = fill(included.Text, mark, in, part); err != nil {
				return "", fmt.Errorf("part %s: %w", name, err)
			}
			n = len("{{}}") + len(name)
		case text[0] == ':' && word != "":
			number := slices.Index(in, word) + 1
			if number == 0 {
				return "", fmt.Errorf("argument :%s is not in the header", word)
			}
			with, n = mark+strconv.Itoa(number), 1+len(word)
		}
		out.WriteString(with)
		text = text[min(n, len(text)):]
	}
}

// wordLen counts the bytes of the name of an argument that text begins with.
func wordLen(text string) int {
	n := 0
	for n < len(text) && (text[n] == '_' || text[n] >= 'a' && text[n] <= 'z' || n > 0 && text[n] >= '0' && text[n] <= '9') {
		n++
	}
	return n
}
