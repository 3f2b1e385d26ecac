package proof

import "strings"

// Number is a number of JSON that a float64 cannot tell from another.
type Number struct {
	Name string
	Text string // as JSON writes it
	Same string // another text of the same number
	Next string // a number that is a little greater
}

// Numbers has those that tests of exact numbers go through.
func Numbers() []Number {
	long := strings.Repeat("1234567890", 1_000)
	return []Number{
		{"2^53", "9007199254740992", "9007199254740992.0", "9007199254740993"},
		{"-2^53", "-9007199254740993", "-90071992547409930e-1", "-9007199254740992"},
		{"2^63", "9223372036854775807", "9.223372036854775807e18", "9223372036854775808"},
		{"10^30", "1000000000000000000000000000000", "1e30", "1000000000000000000000000000001"},
		{"1.10", "1.10", "1.1", "1.1000000000000000000001"},
		{"-0", "-0", "0.0e7", "1e-400"},
		{"1e400", "1e400", "0.10E+401", "1.00000000000000000001e400"},
		{"1e999999999", "1e999999999", "10e999999998", "1e1000000000"},
		{"10,000 digits", long, long + ".00", long[:len(long)-1] + "1"},
	}
}
