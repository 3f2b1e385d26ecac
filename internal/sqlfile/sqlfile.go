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

// Texts returns a function that has the text of each file by its name without ".sql". An argument
// becomes mark and its number: ?1, $1. The files are read at the first call, because most commands
// need no store. The call panics at a mistake in a file, which a test of the caller has to find.
func Texts(files fs.FS, mark string) func() map[string]string {
	return sync.OnceValue(func() map[string]string {
		all, err := Read(files, mark)
		if err != nil {
			panic(err)
		}
		texts := make(map[string]string, len(all))
		for name, f := range all {
			texts[name] = f.Text
		}
		return texts
	})
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
	filled := make(map[string]File, len(all))
	for name, f := range all {
		if f.Text, err = fill(f.Text, mark, f.In, all); err != nil {
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
func fill(text, mark string, in []string, all map[string]File) (string, error) {
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
			if !all[name].Part {
				return "", fmt.Errorf("there is no part %q", name)
			}
			part, err := fill(all[name].Text, mark, in, all)
			if err != nil {
				return "", fmt.Errorf("part %s: %w", name, err)
			}
			with, n = part, len("{{}}")+len(name)
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
