package policy

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// cut makes s valid UTF-8 without NUL and at most limit bytes long. Of a longer text it keeps the
// beginning and the last quarter, because the innermost cause of an error comes last. A mark
// between them counts the bytes that are gone. Without room for a mark it keeps the beginning
// only.
func cut(s string, limit int) string {
	if len(s) > limit {
		mark := fmt.Sprintf(" …[%d bytes cut]… ", len(s)-limit)
		if room := limit - len(mark); room > len(mark) {
			s = head(s, room-room/4) + mark + tail(s, room/4)
		} else {
			s = head(s, limit)
		}
	}
	// Replacing a byte that is no UTF-8 adds two bytes, so text in another encoding grows.
	return head(clean(s), limit)
}

// Limits of the texts that a mask gets.
const (
	maxMasked     = 1 << 20 // bytes of a text
	maxBrokenLine = 4 << 10 // bytes in which dropBrokenLine searches for the end of the line
)

// withoutMiddle leaves out the middle of a text that is too long to be masked. It also leaves out
// the words at the cut, which may be parts of a secret.
func withoutMiddle(s string) string {
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

// clean makes s valid UTF-8 without NUL: some stores keep no other text.
func clean(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// head returns the first n bytes of s, without a part of a rune at the end.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for back := 0; back < utf8.UTFMax && n > 0 && !utf8.RuneStart(s[n]); back++ {
		n--
	}
	return s[:n]
}

// tail returns the last n bytes of s, without a part of a rune at the beginning.
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

// printable replaces by a blank every rune that does not show as itself. Such runes are control
// characters, marks that change the direction of writing, and bytes that are no UTF-8.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, s)
}
