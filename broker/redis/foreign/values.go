package foreign

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/json"
	"io"
	"math"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/nixie-go/nixie/internal/task"
)

// fields are those of a JSON object. A field of another type than the one that is asked for is as
// good as absent.
type fields map[string]json.RawMessage

// object reads a JSON object; nil is none.
func object(text []byte) fields {
	var f fields
	if json.Unmarshal(text, &f) != nil {
		return nil
	}
	return f
}

func (f fields) text(name string) string {
	var s string
	if json.Unmarshal(f[name], &s) != nil {
		return ""
	}
	return s
}

func (f fields) number(name string) (n float64, ok bool) {
	err := json.Unmarshal(f[name], &n)
	return n, err == nil && f[name] != nil && string(f[name]) != "null"
}

// count reads a number of attempts; 0 is none.
func (f fields) count(name string) int {
	n, _ := f.number(name)
	return task.Count(n)
}

// moment reads a time in seconds or milliseconds since 1970; zero is none.
func (f fields) moment(name string) time.Time {
	n, _ := f.number(name)
	return moment(n)
}

func (f fields) object(name string) fields { return object(f[name]) }

// firstMilli is the first number that is milliseconds since 1970 and not seconds.
const firstMilli = 1e11

// lastMilli is the end of the year 2261, after which a time is no time.
const lastMilli = 9_214_646_399_000

// moment makes a time of seconds or milliseconds since 1970, in whole milliseconds, which all
// systems keep at least. Zero is none.
func moment(n float64) time.Time {
	if n < firstMilli {
		n = math.Round(n * 1000)
	}
	if !(n >= 1 && n <= lastMilli) { // also not a number
		return time.Time{}
	}
	return time.UnixMilli(int64(n)).UTC()
}

// zoned reads a time as Python writes it in ISO 8601, as UTC if it names no zone.
func zoned(text string) time.Time {
	for _, layout := range [...]string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999"} {
		if t, err := time.Parse(layout, text); err == nil {
			return moment(float64(t.UnixMilli()))
		}
	}
	return time.Time{}
}

// seconds writes the score of an entry, exactly.
func seconds(score float64) string { return strconv.FormatFloat(score, 'g', -1, 64) }

// Most bytes that compressed texts may become.
const (
	maxInflated = 4 << 20  // of one text
	maxPage     = 64 << 20 // of those of one call of Next
)

const tooLong = "(left out: it inflates beyond 4 MiB)"

// inflater inflates the texts of a page.
type inflater struct {
	left int  // bytes
	full bool // a text did not fit into what was left
}

// text inflates what zlib compressed. A bomb costs what is inflated of it.
func (in *inflater) text(data []byte) string {
	r, err := zlib.NewReader(bytes.NewReader(data))
	if err != nil {
		return ""
	}
	most := min(maxInflated, in.left)
	out, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	in.left = max(in.left-len(out), 0)
	switch {
	case len(out) > most:
		in.full = in.full || most < maxInflated
		return tooLong
	case err != nil:
		return ""
	}
	return string(out)
}

// base64 inflates what is in base64 as well.
func (in *inflater) base64(text string) string {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return ""
	}
	return in.text(data)
}

// globChars stand for other characters in patterns of Redis.
var globChars = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[*?\[\]\\^]`)
})

// escaped makes a text stand for itself in a pattern of Redis.
func escaped(text string) string { return globChars().ReplaceAllString(text, `\$0`) }

// parseScore reads a score as Redis writes it.
func parseScore(text string) (float64, error) { return strconv.ParseFloat(text, 64) }
