package privacy

import "strings"

// Digits of the numbers of payment cards.
const (
	minCard   = 13
	maxCard   = 19
	cardEnd   = 4 // digits that stay, to be recognised by
	cardSpace = 2 * maxCard
)

// Cards hides the numbers of payment cards but for their last four digits:
// 13 to 19 digits, in groups or not, whose check digit is right. It is not part
// of [Secrets], as one in ten long numbers looks like one.
func Cards(text string) string {
	var out strings.Builder
	kept := 0
	for at := 0; at < len(text); {
		if !isDigit(text[at]) || at > 0 && isWord(text[at-1]) {
			at++
			continue
		}
		end, last := cardAt(text[at:min(len(text), at+cardSpace)])
		if end == 0 {
			for at < len(text) && isDigit(text[at]) {
				at++
			}
			continue
		}
		out.WriteString(text[kept:at])
		out.WriteString(Hidden)
		kept = at + last
		at += end
	}
	if kept == 0 {
		return text
	}
	out.WriteString(text[kept:])
	return out.String()
}

// cardAt returns where the number ends that text begins with, and where its
// last four digits begin; 0 when it is none.
func cardAt(text string) (end, last int) {
	var digits []byte
	var places []int
	for i := range len(text) {
		b := text[i]
		if isDigit(b) {
			digits, places, end = append(digits, b-'0'), append(places, i), i+1
			continue
		}
		if b != ' ' && b != '-' || i+1 == len(text) || !isDigit(text[i+1]) {
			if isWord(b) {
				return 0, 0
			}
			break
		}
	}
	if len(digits) < minCard || len(digits) > maxCard || !luhn(digits) {
		return 0, 0
	}
	return end, places[len(digits)-cardEnd]
}

// luhn checks the check digit. Numbers of one digit only are none.
func luhn(digits []byte) bool {
	sum, same := 0, true
	for i := range digits {
		d := int(digits[len(digits)-1-i])
		same = same && digits[i] == digits[0]
		if i%2 == 1 {
			d *= 2
		}
		sum += d/10 + d%10
	}
	return sum%10 == 0 && !same
}
