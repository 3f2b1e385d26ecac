package items

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nixie-go/nixie"
)

// sniffBytes is the number of bytes that detect reads to tell the format of a list.
const sniffBytes = 64 << 10

// openFile opens the list, or copies it when it cannot be read twice.
func (r *Reader) openFile() error {
	if r.opts.Path == "" {
		return nixie.Errorf(nixie.CodeInvalid, "no list is named: give a file, or - for standard input")
	}
	if r.opts.Path == "-" {
		r.name = "standard input"
		if r.opts.Stdin == nil {
			return nixie.Errorf(nixie.CodeInvalid, "there is no standard input to read: name a file")
		}
		return r.spool(r.opts.Stdin)
	}
	file, err := os.Open(r.opts.Path)
	switch {
	case os.IsNotExist(err):
		return nixie.Errorf(nixie.CodeNotFound, "%s does not exist: check the path of the list", visible([]byte(r.name)))
	case err != nil:
		return unreadable(r.name, err)
	}
	about, err := file.Stat()
	switch {
	case err != nil:
		err = unreadable(r.name, err)
	case about.IsDir():
		err = nixie.Errorf(nixie.CodeInvalid,
			"%s is a directory: name a file, or pipe a list of its files: find %[1]s -type f | nixie run - --format lines …",
			visible([]byte(r.name)))
	case about.Mode().IsRegular():
		r.file = file
		return nil
	default:
		err = r.spool(file)
	}
	_ = file.Close() // it was only read
	return err
}

// spool copies from into a file without a name, which ends when it is closed or the process ends.
func (r *Reader) spool(from io.Reader) error {
	file, err := os.CreateTemp(r.opts.TempDir, "nixie-items-*")
	if err != nil {
		return r.spoolError(err)
	}
	if err = os.Remove(file.Name()); err == nil {
		_, err = io.Copy(file, from)
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = file.Close() // the first error is the one to report
		return r.spoolError(err)
	}
	r.file = file
	return nil
}

func (r *Reader) spoolError(err error) error {
	dir := r.opts.TempDir
	if dir == "" {
		dir = os.TempDir()
	}
	return nixie.Errorf(nixie.CodeUnavailable, "%s cannot be copied to the temporary folder %s: %w: free some room there, or set TMPDIR",
		r.name, dir, err)
}

// detect finds the format, and the byte at which the list begins.
func (r *Reader) detect() error {
	if r.format == "" {
		r.format = Auto
	}
	if !slices.Contains(Formats(), r.format) {
		return nixie.Errorf(nixie.CodeInvalid, "format %q is unknown: give one of auto, jsonl, json, csv, lines", r.format)
	}
	head := make([]byte, sniffBytes)
	n, err := io.ReadFull(r.file, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return unreadable(r.name, err)
	}
	head = head[:n]
	if rest, marked := bytes.CutPrefix(head, []byte("\ufeff")); marked {
		head, r.start = rest, int64(n-len(rest))
	}
	r.comma = ','
	suffix := strings.ToLower(filepath.Ext(r.opts.Path))
	if suffix == ".tsv" || suffix == ".tab" {
		r.comma = '\t'
	}
	if r.format != Lines {
		if err := r.refuseEncoded(head); err != nil {
			return err
		}
	}
	if r.format == Auto {
		r.format = bySuffix(suffix)
	}
	if r.format == Auto {
		if err := r.sniff(head, n < sniffBytes); err != nil {
			return err
		}
	}
	whole := head
	if n == sniffBytes { // the \n of a last \r may come after it
		whole = bytes.TrimSuffix(head, []byte("\r"))
	}
	r.end = lineEnd(whole, r.format == CSV)
	if r.format == CSV && r.comma == ',' {
		r.comma = separator(head, r.end)
	}
	return nil
}

// lineEnd returns what ends a line. It is \r, as old programs of the Mac write it, if the beginning
// of the list has no \n, or none outside the quotes of a table.
func lineEnd(head []byte, quotes bool) byte {
	quoted, end := false, byte('\n')
	for _, c := range head {
		switch {
		case c == '"' && quotes:
			quoted = !quoted
		case quoted:
		case c == '\n':
			return '\n'
		case c == '\r':
			end = '\r'
		}
	}
	return end
}

// separator returns the separator of a table's header: a comma, or in a header without commas a
// semicolon or a tab.
func separator(head []byte, end byte) byte {
	header, _, _ := bytes.Cut(bytes.TrimLeft(head, "\r\n"), []byte{end})
	quoted, semicolons, tabs := false, 0, 0
	for _, c := range header {
		switch {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == ',':
			return ','
		case c == ';':
			semicolons++
		case c == '\t':
			tabs++
		}
	}
	switch {
	case semicolons+tabs == 0:
		return ','
	case semicolons >= tabs:
		return ';'
	}
	return '\t'
}

// refuseEncoded refuses a list that must be unpacked or converted first, and names the command.
func (r *Reader) refuseEncoded(head []byte) error {
	for _, e := range [...]struct{ magic, what, fix string }{
		{"\x1f\x8b", "compressed with gzip", "zcat FILE | nixie … -"},
		{"\x28\xb5\x2f\xfd", "compressed with zstd", "zstdcat FILE | nixie … -"},
		{"PK\x03\x04", "a zip file", "unzip it first"},
		{"\xff\xfe", "UTF-16", "iconv -f UTF-16 -t UTF-8 FILE | nixie … -"},
		{"\xfe\xff", "UTF-16", "iconv -f UTF-16 -t UTF-8 FILE | nixie … -"},
	} {
		if bytes.HasPrefix(head, []byte(e.magic)) {
			return &InputError{List: r.name, Line: 1, Column: 1, Code: nixie.CodeInvalid,
				Text: "the list is " + e.what + ": " + e.fix + " (if it really is one of plain lines, say --format lines)"}
		}
	}
	return nil
}

func bySuffix(suffix string) Format {
	switch suffix {
	case ".jsonl", ".ndjson", ".jsonlines":
		return JSONL
	case ".json":
		return JSON
	case ".csv", ".tsv", ".tab":
		return CSV
	case ".txt", ".list", ".lst":
		return Lines
	}
	return Auto
}

// sniff tells the format from the beginning of the list.
func (r *Reader) sniff(head []byte, whole bool) error {
	text := bytes.TrimLeft(head, " \t\r\n")
	line, rest, ended := bytes.Cut(text, []byte("\n"))
	single := whole && len(bytes.TrimSpace(rest)) == 0
	switch {
	case len(text) == 0:
		r.format = Lines // empty, or only empty lines
		return nil
	case r.opts.Objects && text[0] != '[' && text[0] != '{':
		r.format = CSV
		return nil
	case text[0] != '[' && text[0] != '{' && text[0] != '"':
		if bytes.IndexByte(line, ',') >= 0 || bytes.IndexByte(line, '\t') >= 0 {
			return r.ambiguousFormat("CSV or plain lines")
		}
		r.format = Lines
		return nil
	case text[0] == '"':
		return r.ambiguousFormat("JSON lines, CSV or plain lines")
	case (ended || whole) && json.Valid(line) && !single:
		r.format = JSONL
		return nil
	case text[0] == '[' || r.opts.Objects || ended && !json.Valid(line):
		r.format = JSON
		return nil
	}
	return r.ambiguousFormat("one JSON line or a JSON document with the items inside (then say --json-path)")
}

func (r *Reader) ambiguousFormat(what string) error {
	return nixie.Errorf(nixie.CodeInvalid, "%s could be %s: say which with --format jsonl, json, csv or lines", visible([]byte(r.name)),
		what)
}
