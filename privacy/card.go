package privacy

import "strings"

// Digits of the numbers of payment cards.
const (
	minCard   = 13
	maxCard   = 19
	cardEnd   = 4 // digits that stay, so that people recognise the card
	cardSpace = 2 * maxCard
)

// Cards hides the numbers of payment cards except for their last four digits. Such a number has 13
// to 19 digits, with or without groups, and the right check digit. One in ten other long numbers
// has it too, so Cards is not part of [Secrets].
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

// cardAt returns the end of the card number that text begins with, and the offset of its last four
// digits; 0 if there is none.
func cardAt(text string) (end, last int) {
	var digits []byte
	var offsets []int
	for i := range len(text) {
		b := text[i]
		if isDigit(b) {
			digits, offsets, end = append(digits, b-'0'), append(offsets, i), i+1
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
	return end, offsets[len(digits)-cardEnd]
}

// luhn checks the check digit. It refuses a number whose digits are all the same.
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
