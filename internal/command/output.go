package command

import (
	"bytes"
	"io"
	"os"

	"github.com/nixie-go/nixie"
)

// Bounds of an [Output].
const (
	OutputInMemory = 64 << 10 // bytes of one stream in memory; later bytes are in a file
	MaxOutput      = 1 << 30  // bytes of one stream that are kept; later bytes are lost
)

// Output keeps all that a command prints on one stream. Bytes beyond [OutputInMemory] are in a
// temporary file without a name, which ends with [Output.Close] or with the process. The zero value
// is empty and ready. It is not safe for concurrent use.
type Output struct {
	head []byte
	rest *os.File
	size int64 // bytes kept
	lost int64
	why  error // the first loss
}

// Write keeps p. It never fails, because its error would end the command; [Output.Lost] reports
// lost bytes.
func (o *Output) Write(p []byte) (int, error) {
	kept := o.keep(p)
	o.size += int64(kept)
	o.lost += int64(len(p) - kept)
	return len(p), nil
}

// keep returns the number of bytes of p that it kept. After a loss it keeps nothing more: the
// output would have a hole.
func (o *Output) keep(p []byte) int {
	if o.why != nil {
		return 0
	}
	part := p
	if room := MaxOutput - o.size; int64(len(part)) > room {
		part = part[:room]
		o.why = nixie.Errorf(nixie.CodeLimit, "the limit is %d bytes: let the command write to a file", MaxOutput)
	}
	n := min(len(part), OutputInMemory-len(o.head))
	o.head = append(o.head, part[:n]...)
	if n == len(part) {
		return n
	}
	more, err := o.spill(part[n:])
	if err != nil {
		o.why = nixie.Errorf(nixie.CodeUnavailable, "temporary folder %s: %w; TMPDIR names another", os.TempDir(), err)
	}
	return n + more
}

func (o *Output) spill(p []byte) (int, error) {
	if o.rest == nil {
		file, err := os.CreateTemp("", "nixie-output-*")
		if err != nil {
			return 0, err
		}
		if err := os.Remove(file.Name()); err != nil {
			_ = file.Close() // the first error is the one to report
			return 0, err
		}
		o.rest = file
	}
	return o.rest.Write(p)
}

// Size returns the number of bytes kept.
func (o *Output) Size() int64 { return o.size }

// Lost returns the number of bytes lost at the end, and the reason.
func (o *Output) Lost() (int64, error) { return o.lost, o.why }

// Reader reads the kept bytes from the beginning, until Close. Several may be in use.
func (o *Output) Reader() io.Reader {
	head := bytes.NewReader(o.head)
	if o.rest == nil {
		return head
	}
	return io.MultiReader(head, io.NewSectionReader(o.rest, 0, o.size-int64(len(o.head))))
}

// Close removes the file.
func (o *Output) Close() {
	if o.rest != nil {
		_ = o.rest.Close() // it has no name, and is removed
	}
	*o = Output{}
}
