package policy

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/nixie-go/nixie"
)

// passingExits are exit codes of curl for causes that time may heal. It prints nothing with -s.
var passingExits = map[int]nixie.Reason{
	6:  nixie.ReasonTransportUnavailable, // the name of the host is not known
	7:  nixie.ReasonTransportUnavailable, // no connection
	28: nixie.ReasonTimeout,
	35: nixie.ReasonTransportUnavailable, // TLS
	52: nixie.ReasonTransportUnavailable, // no answer
	56: nixie.ReasonTransportUnavailable, // the connection broke
}

// OfCommand returns what the end of a command means: as [OfExit], but a failure that OfExit does
// not know is transient if the line that says why, see [WhyOf], or an exit code of curl tells a
// cause that time may heal. It only adds reasons: no line makes a failure permanent, or a permanent
// one transient. Program is the name of the command's file, without folders.
func OfCommand(program string, code int, line string) (nixie.Class, nixie.Reason) {
	class, reason := OfExit(code)
	if class != nixie.ClassUnknown {
		return class, reason
	}
	found := reasonSaid(line, true)
	if program == "curl" {
		found = cmp.Or(passingExits[code], found)
	}
	if found != "" {
		return nixie.ClassTransient, found
	}
	return class, reason
}

// ForeignReason returns the reason of a failure of another system; "" if nothing tells it. Kind is
// the type of its error. Each cause begins with its own type, with a colon before its text; the
// root is the last one. It says most, and the text of the error itself the least.
func ForeignReason(kind, text string, causes ...string) nixie.Reason {
	reason := reasonNamed(kind)
	for _, cause := range slices.Backward(causes) {
		name, _, _ := strings.Cut(cause, ":")
		reason = cmp.Or(reason, reasonNamed(name), reasonSaid(cause, false))
	}
	return cmp.Or(reason, reasonSaid(text, false))
}

// passingReason returns the reason that the type or the text of an error tells for a cause that
// time may heal, or "".
func passingReason(kind, text string) nixie.Reason {
	return cmp.Or(reasonSaid(kind, true), reasonSaid(text, true))
}

// phrase is a part of a row of [foreign].
type phrase struct {
	text string
	row  int
}

// sayings holds the phrases by their first word.
type sayings struct {
	phrases map[string][]phrase
	maybe   [1 << 12]bool // whether there is one, by the hash of the first word: most words have none
	inWord  [256]bool     // bytes
	parts   []phrase      // of names of types
}

var sayingsOf = sync.OnceValue(func() *sayings {
	s := &sayings{phrases: map[string][]phrase{}}
	for b := range s.inWord {
		s.inWord[b] = isWordByte(byte(b))
	}
	for row := range foreign {
		for text := range strings.SplitSeq(foreign[row].said, "|") {
			if part, is := strings.CutPrefix(text, "*"); is {
				s.parts = append(s.parts, phrase{part, row})
				continue
			}
			end := wordEnd(text, 0)
			s.phrases[text[:end]] = append(s.phrases[text[:end]], phrase{text, row})
			s.maybe[hashOfWord(text[:end])] = true
		}
	}
	return s
})

// reasonSaid returns the reason of the first row of [foreign] with a phrase of the text, or "".
// Passing leaves out reasons that time does not heal. Its time is linear in the text.
func reasonSaid(text string, passing bool) nixie.Reason {
	s, first := sayingsOf(), len(foreign)
	for at := 0; at < len(text); at++ {
		begin := at
		for at < len(text) && s.inWord[text[at]] {
			at++
		}
		if begin == at || !s.maybe[hashOfWord(text[begin:at])] {
			continue
		}
		for _, p := range s.phrases[strings.ToLower(text[begin:at])] {
			if p.row < first && !(passing && !passes(foreign[p.row].reason)) && p.begins(text[begin:]) {
				first = p.row
			}
		}
	}
	if first == len(foreign) {
		return ""
	}
	return foreign[first].reason
}

// hashOfWord hashes a word, without its case, by its first and last letters and its length.
func hashOfWord(word string) int {
	return (int(word[0]&31)<<7 ^ int(word[len(word)-1]&31)<<4 ^ len(word)) & (1<<12 - 1)
}

// begins reports whether a text begins with the phrase.
func (p phrase) begins(text string) bool {
	at := 0
	for i := range len(p.text) {
		if p.text[i] == '*' {
			for at < len(text) && text[at] > ' ' {
				at++
			}
			continue
		}
		if at == len(text) || lower(text[at]) != p.text[i] {
			return false
		}
		at++
	}
	return !isWordByte(p.text[len(p.text)-1]) || at == len(text) || !isWordByte(text[at])
}

// reasonNamed returns the reason of the name of a type, or "".
func reasonNamed(kind string) nixie.Reason {
	if reason := reasonSaid(kind, false); reason != "" {
		return reason
	}
	name := strings.ToLower(kind[strings.LastIndexAny(kind, ".$:\\")+1:])
	for _, p := range sayingsOf().parts {
		if strings.Contains(name, p.text) {
			return foreign[p.row].reason
		}
	}
	return ""
}

func wordEnd(text string, at int) int {
	for at < len(text) && isWordByte(text[at]) {
		at++
	}
	return at
}

func isWordByte(b byte) bool { return isLatin(b) || isDigit(rune(b)) || b == '_' || b >= utf8.RuneSelf }

func lower(b byte) byte {
	if b >= 'A' && b <= 'Z' {
		b |= 0x20
	}
	return b
}
