package policy

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// cut makes s valid UTF-8 without NUL and at most limit bytes long. A longer
// text keeps its beginning and, as the innermost cause of an error stands last,
// the last quarter; a mark between them counts what is gone. Where there is no
// room for a mark the beginning alone stays.
func cut(s string, limit int) string {
	if len(s) > limit {
		mark := fmt.Sprintf(" …[%d bytes cut]… ", len(s)-limit)
		if room := limit - len(mark); room > len(mark) {
			s = head(s, room-room/4) + mark + tail(s, room/4)
		} else {
			s = head(s, limit)
		}
	}
	// A byte that is replaced takes three: text in another encoding grows.
	return head(clean(s), limit)
}

// What a mask looks at.
const (
	maxMasked     = 1 << 20 // bytes of a text
	maxBrokenLine = 4 << 10 // bytes in which the end of a line without a beginning is looked for
)

// ends leaves out the middle of a text that is too long to be masked. The words
// at the cut go too: they may be parts of something that is to be hidden.
func ends(s string) string {
	if len(s) <= maxMasked {
		return s
	}
	const blanks = " \t\r\n"
	first, last := head(s, maxMasked/2), tail(s, maxMasked/2)
	first = first[:max(strings.LastIndexAny(first, blanks), 0)]
	if begin := strings.IndexAny(last, blanks); begin >= 0 {
		last = last[begin:]
	} else {
		last = ""
	}
	return fmt.Sprintf("%s …[%d bytes cut]… %s", first, len(s)-len(first)-len(last), last)
}

// clean makes s valid UTF-8 without NUL, which not every store can keep.
func clean(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// head is the first n bytes of s, less what would be part of a rune.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for back := 0; back < utf8.UTFMax && n > 0 && !utf8.RuneStart(s[n]); back++ {
		n--
	}
	return s[:n]
}

// tail is the last n bytes of s, less what would be part of a rune.
func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = s[len(s)-n:]
	for skipped := 0; skipped < utf8.UTFMax && s != "" && !utf8.RuneStart(s[0]); skipped++ {
		s = s[1:]
	}
	return s
}

// printable replaces everything by a blank that would not show as itself:
// control characters, marks that turn the direction of writing, what is not
// UTF-8.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, s)
}
