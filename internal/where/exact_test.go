package where_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/internal/where"
)

// A number of any size is told from its neighbour at each spot of an expression.
func TestExactNumbers(t *testing.T) {
	for _, spot := range []struct{ name, holds, not string }{
		{"a literal, ==", "item.n == SAME", "item.n == NEXT"},
		{"a literal, <", "item.n < NEXT && !(item.n < SAME)", "item.n > SAME || item.next <= SAME"},
		{"a literal, in", "item.n in [NEXT, SAME]", "item.n in [NEXT]"},
		{"field and field", "item.n == item.same && item.next > item.n", "item.n == item.next || item.n != item.same"},
		{"a list has it", "item.list contains item.same", "item.list contains item.next"},
		{"lists and objects", "item.list == item.list2 && item.o == item.o2", "item.list == item.list3 || item.o == item.o3"},
		{"a text that shows it", "item.text == item.same && item.text < item.next", "item.text == item.next"},
		{"a text and a literal", "item.text == SAME", "item.text == NEXT"},
		{"its type", "is_number(item.n)", "is_string(item.n)"},
	} {
		for _, n := range proof.Numbers() {
			body := strings.NewReplacer("NEXT", n.Next, "SAME", n.Same, "N", n.Text).Replace(`{"n": N, "same": SAME, "next": NEXT, ` +
				`"text": " N ", "list": [0.5, N], "list2": [5e-1, SAME], "list3": [0.5, NEXT], ` +
				`"o": {"v": N}, "o2": {"v": SAME}, "o3": {"v": NEXT}}`)
			outcome := "exact"
			for text, want := range map[string]bool{spot.holds: true, spot.not: false} {
				e, err := where.Parse(strings.NewReplacer("NEXT", n.Next, "SAME", n.Same).Replace(text))
				switch {
				case err != nil && strings.Contains(err.Error(), "give at most 4096") && len(n.Text) > 4096:
					outcome = "refused: an expression has at most 4096 bytes"
				case err != nil:
					t.Fatal(err)
				case e.Matches(letter(body)) != want:
					t.Errorf("%s, %s: %s is not %t", spot.name, n.Name, text, want)
				}
			}
			t.Logf("%-22s %-14s %s", spot.name, n.Name, outcome)
		}
	}
}

// The exponent of a number is limited, and the number takes no more memory than its text.
func TestExactLimits(t *testing.T) {
	for text, says := range map[string]string{
		"item.n == 1e9999999999999999999":          "the exponent of 1e9999999999999999999 has more than 18 digits, the limit",
		"item.n == 1e-9999999999999999999":         "has more than 18 digits, the limit",
		"item.n < 1e" + strings.Repeat("9", 3000):  "has more than 18 digits, the limit",
		"item.n == " + strings.Repeat("9", 10_000): "at most 4096",
	} {
		if _, err := where.Parse(text); nixie.CodeOf(err) != nixie.CodeInvalid || !strings.Contains(err.Error(), says) {
			t.Errorf("%.60s: %v", text, err)
		}
	}
	for text, want := range map[string]bool{
		`item.n == item.n`: true, `item.n == item.m`: false, `item.n > 1`: false, `item.n < 1`: false, `is_number(item.n)`: true,
		`0e9999999999999999999 == 0`: true, `1e-999999999999999999 > 0`: true, `1e999999999999999999 > 1e999999999999999998`: true,
		`item[0] == nil`: true, `item.list[1e0] == 2`: true, `item.list[1.5] == nil`: true, `item.list[-1] == 3`: true,
		`item.list[1e999999999] == nil`: true, `item.list["1"] == nil`: true, `007 == 7 && -00.50 == -0.5`: true,
	} {
		e, err := where.Parse(text)
		if err != nil {
			t.Fatal(text, err)
		}
		l := letter(`{"n": 1e99999999999999999999, "m": 2e99999999999999999999, "list": [1, 2, 3]}`)
		if e.Matches(l) != want {
			t.Errorf("%s is not %t", text, want)
		}
		if took := allocated(func() { e.Matches(l) }); took > 1<<20 {
			t.Errorf("%s takes %d bytes", text, took)
		}
	}
}

func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// exact is a number of the independent implementation: digits × 10^exponent.
type exact struct {
	digits   *big.Int
	exponent int
}

func (a exact) compare(b exact) int {
	least := min(a.exponent, b.exponent)
	scaled := func(n exact) *big.Int {
		return new(big.Int).Mul(n.digits, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n.exponent-least)), nil))
	}
	return scaled(a).Cmp(scaled(b))
}

// drawer draws expressions and works them out with math/big.
type drawer struct{ *rand.Rand }

// number draws a number that is near others, and one of its texts.
func (d drawer) number() (exact, string) {
	near := [...]string{"0", "1", "9007199254740992", "9223372036854775807", "18446744073709551615", "1" + strings.Repeat("0", 30), "110"}
	digits, _ := new(big.Int).SetString(near[d.IntN(len(near))], 10)
	digits.Add(digits, big.NewInt(int64(d.IntN(5)-2)))
	n := exact{digits, [...]int{0, 0, 0, -2, 3, -19, 400, -400}[d.IntN(8)]}
	if d.IntN(3) == 0 {
		digits.Neg(digits)
	}
	return n, d.text(n)
}

// text writes a number with its point anywhere, zeros around it, and with or without an exponent.
func (d drawer) text(n exact) string {
	digits, sign := new(big.Int).Abs(n.digits).String(), ""
	if n.digits.Sign() < 0 || n.digits.Sign() == 0 && d.IntN(2) == 0 {
		sign = "-"
	}
	exponent := n.exponent
	for range d.IntN(4) * n.digits.CmpAbs(new(big.Int)) { // 00 is no number of JSON
		digits, exponent = digits+"0", exponent-1
	}
	if point := d.IntN(len(digits) + 3); point > 0 && d.IntN(2) == 0 { // digits after the point
		for len(digits) <= point {
			digits = "0" + digits
		}
		digits, exponent = digits[:len(digits)-point]+"."+digits[len(digits)-point:], exponent+point
	}
	if exponent == 0 && d.IntN(2) == 0 {
		return sign + digits
	}
	mark := [...]string{"e", "E", "e0", "E00"}[d.IntN(4)]
	switch {
	case exponent < 0:
		return sign + digits + mark[:1] + "-" + mark[1:] + strconv.Itoa(-exponent)
	case d.IntN(2) == 0:
		return sign + digits + mark[:1] + "+" + mark[1:] + strconv.Itoa(exponent)
	}
	return sign + digits + mark + strconv.Itoa(exponent)
}

// expression draws an expression over fields, and whether it holds.
func (d drawer) expression(fields []exact, depth int) (string, bool) {
	if depth > 0 && d.IntN(3) > 0 {
		left, l := d.expression(fields, depth-1)
		right, r := d.expression(fields, depth-1)
		switch d.IntN(3) {
		case 0:
			return "!(" + left + ")", !l
		case 1:
			return "(" + left + " && " + right + ")", l && r
		}
		return "(" + left + " || " + right + ")", l || r
	}
	left, l, text := d.operand(fields)
	right, r, other := d.operand(fields)
	if text && other { // two texts would be compared as texts
		r, right = d.number()
	}
	order := l.compare(r)
	switch operator := [...]string{"==", "!=", "<", "<=", ">", ">=", "in"}[d.IntN(7)]; operator {
	case "in":
		more, m, _ := d.operand(nil)
		return left + " in [" + more + ", " + right + "]", order == 0 || l.compare(m) == 0
	default:
		holds := map[string]bool{"==": order == 0, "!=": order != 0, "<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}
		return left + " " + operator + " " + right, holds[operator]
	}
}

// operand draws a field, the text of a field, or a literal.
func (d drawer) operand(fields []exact) (text string, n exact, isText bool) {
	if len(fields) > 0 && d.IntN(3) > 0 {
		at := d.IntN(len(fields))
		if d.IntN(4) == 0 {
			return fmt.Sprintf("item.text%d", at), fields[at], true
		}
		return fmt.Sprintf("item.list[%d].v", at), fields[at], false
	}
	n, text = d.number()
	return text, n, false
}

// Expressions over numbers hold as an independent implementation works them out.
func TestExactExpressions(t *testing.T) {
	const each = 100
	proof.Run(t, "exact-expressions", func(t *testing.T, seed uint64) int {
		d := drawer{rand.New(rand.NewPCG(seed, 1))}
		for range each {
			fields := make([]exact, 4)
			var list, texts []string
			for i := range fields {
				var text string
				fields[i], text = d.number()
				list, texts = append(list, `{"v":`+text+`}`), append(texts, fmt.Sprintf(`"text%d":" %s"`, i, d.text(fields[i])))
			}
			body := fmt.Sprintf(`{"list":[%s],%s}`, strings.Join(list, ","), strings.Join(texts, ","))
			text, want := d.expression(fields, 3)
			e, err := where.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			if e.Matches(letter(body)) != want {
				t.Fatalf("%s is not %t for %s", text, want, body)
			}
		}
		return each
	})
}
