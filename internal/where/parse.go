package where

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/nixie-go/nixie/internal/items"
)

// parser reads an expression from left to right; each method reads one form of the language.
type parser struct {
	text  string
	at    int
	depth int
	e     *Expr
	bare  bool  // a name is a field of the item
	whole bool  // with bare: so is item
	names []int // where the bare ones are
}

// maxDepth limits the nesting of parentheses.
const maxDepth = 100

func (p *parser) parse() (node, error) {
	n, err := p.or()
	if err == nil && p.peek() != "" {
		err = p.unexpected("the end")
	}
	return n, err
}

// Tokens.

// symbols lists the tokens that are no words, longest first.
var symbols = []string{"||", "&&", "==", "!=", "<=", ">=", "?.", "=", "<", ">", "!", "(", ")", "[", "]", ",", ".", "-"}

// peek returns the next token, "" at the end. For a text it returns the quote.
func (p *parser) peek() string {
	p.at += len(p.text[p.at:]) - len(strings.TrimLeftFunc(p.text[p.at:], unicode.IsSpace))
	rest := p.text[p.at:]
	if rest == "" {
		return ""
	}
	for _, symbol := range symbols {
		if strings.HasPrefix(rest, symbol) {
			return symbol
		}
	}
	if n := strings.IndexFunc(rest, func(c rune) bool { return c != '_' && !unicode.IsLetter(c) && !unicode.IsDigit(c) }); n != 0 {
		if n < 0 {
			n = len(rest)
		}
		return rest[:n]
	}
	_, n := utf8.DecodeRuneInString(rest)
	return rest[:n]
}

// take takes the next token if it is one of these.
func (p *parser) take(tokens ...string) (string, bool) {
	token := p.peek()
	if token == "" || !slices.Contains(tokens, token) {
		return "", false
	}
	p.at += len(token)
	return token, true
}

func (p *parser) expect(token string) error {
	if _, ok := p.take(token); !ok {
		return p.unexpected(token)
	}
	return nil
}

func (p *parser) unexpected(want string) error {
	found := p.peek()
	if found == "" {
		found = "the end"
	}
	return p.errorf("found %s, want %s", found, want)
}

func (p *parser) errorf(format string, args ...any) error {
	return fmt.Errorf("at character %d: %w", utf8.RuneCountInString(p.text[:p.at])+1, fmt.Errorf(format, args...))
}

// Forms.

func (p *parser) or() (node, error) {
	left, err := p.and()
	for err == nil {
		if _, more := p.take("||", "or", "OR"); !more {
			break
		}
		var right node
		right, err = p.and()
		left = orNode{left, right}
	}
	return left, err
}

func (p *parser) and() (node, error) {
	left, err := p.negation()
	for err == nil {
		if _, more := p.take("&&", "and", "AND"); !more {
			break
		}
		var right node
		right, err = p.negation()
		left = andNode{left, right}
	}
	return left, err
}

func (p *parser) negation() (node, error) {
	if _, is := p.take("!", "not", "NOT"); !is {
		return p.comparison()
	}
	if p.depth++; p.depth > maxDepth {
		return nil, p.errorf("it nests deeper than %d", maxDepth)
	}
	defer func() { p.depth-- }()
	of, err := p.negation()
	return notNode{of}, err
}

// operators lists the operators that compare.
var operators = []string{"==", "=", "!=", "<=", ">=", "<", ">", "contains", "startsWith", "endsWith", "in", "matches"}

func (p *parser) comparison() (node, error) {
	left, err := p.operand()
	if err != nil {
		return nil, err
	}
	operator, is := p.take(operators...)
	switch {
	case !is:
		return left, nil
	case operator == "matches":
		pattern, err := p.pattern()
		return compare{left, literal{}, pattern}, err
	}
	right, err := p.operand()
	return compare{left, right, comparisons[operator]}, err
}

func (p *parser) operand() (node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.errorf("it nests deeper than %d", maxDepth)
	}
	defer func() { p.depth-- }()
	token := p.peek()
	switch {
	case token == "":
		return nil, p.unexpected("a value")
	case token == "(":
		p.at++
		n, err := p.or()
		if err != nil {
			return nil, err
		}
		return n, p.expect(")")
	case token == "[":
		p.at++
		values, err := p.values("]")
		return list(values), err
	case token == `"` || token == "'":
		text, err := p.quoted()
		return literal{text}, err
	case token == "-" || token[0] >= '0' && token[0] <= '9':
		return p.number()
	case isName(token):
		p.at += len(token)
		return p.named(token)
	}
	return nil, p.unexpected("a value")
}

func isName(token string) bool {
	c, _ := utf8.DecodeRuneInString(token)
	return c == '_' || unicode.IsLetter(c)
}

// values reads values with commas between them, up to an end.
func (p *parser) values(end string) (all []node, err error) {
	if _, none := p.take(end); none {
		return nil, nil
	}
	for {
		n, err := p.or()
		if err != nil {
			return nil, err
		}
		all = append(all, n)
		if _, more := p.take(","); !more {
			return all, p.expect(end)
		}
	}
}

var numeral = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(-?)0*([0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)`)
})

func (p *parser) number() (node, error) {
	parts := numeral().FindStringSubmatch(p.text[p.at:])
	if parts == nil {
		return nil, p.errorf("%q is no number", p.peek())
	}
	n, ok := items.ParseNumber(parts[1] + parts[2])
	if !ok {
		return nil, p.errorf("the exponent of %.40s has more than %d digits, the limit", parts[0], items.MaxExponent)
	}
	p.at += len(parts[0])
	return literal{n}, nil
}

// quoted reads a text in single or double quotes. A backslash comes before a quote, a backslash, or
// the n or t of a line end or tab.
func (p *parser) quoted() (string, error) {
	quote := p.text[p.at]
	var b strings.Builder
	for i := p.at + 1; i < len(p.text); i++ {
		switch c := p.text[i]; {
		case c == quote:
			p.at = i + 1
			return b.String(), nil
		case c == '\\' && i+1 < len(p.text):
			i++
			switch p.text[i] {
			case 'n':
				b.WriteByte('\n')
			case 't':
				b.WriteByte('\t')
			case '\\', '"', '\'':
				b.WriteByte(p.text[i])
			default:
				b.WriteByte('\\') // for patterns
				b.WriteByte(p.text[i])
			}
		default:
			b.WriteByte(c)
		}
	}
	return "", p.errorf("the text has no end: a quote is missing")
}

// pattern reads a regular expression in quotes.
func (p *parser) pattern() (func(left, right any) bool, error) {
	if token := p.peek(); token != `"` && token != "'" {
		return nil, p.unexpected("a pattern in quotes")
	}
	text, err := p.quoted()
	if err != nil {
		return nil, err
	}
	pattern, err := regexp.Compile(text)
	if err != nil {
		return nil, p.errorf("%s is no regular expression: %w", text, err)
	}
	return matching(pattern), nil
}

// named reads a form that begins with a name: a value, a function, a fact, or the item.
func (p *parser) named(name string) (node, error) {
	start := p.at - len(name)
	switch name {
	case "true", "false":
		return literal{name == "true"}, nil
	case "null", "nil":
		return literal{}, nil
	case "item":
		if !p.whole {
			return p.members()
		}
	}
	if _, calls := p.take("("); calls {
		return p.call(name)
	}
	if p.bare {
		p.names = append(p.names, start)
		return p.membersOf(member{item{}, literal{name}}, []string{name})
	}
	if fact := facts[name]; fact != nil {
		p.e.failure = p.e.failure || name == "error_type" || name == "step_failed"
		return factNode{fact}, nil
	}
	return nil, p.errorf("%s is not known: there are item.FIELD, %s", name, strings.Join(Facts(), ", "))
}

func (p *parser) call(name string) (node, error) {
	if name == "matches" {
		of, err := p.or()
		if err == nil {
			err = p.expect(",")
		}
		if err != nil {
			return nil, err
		}
		pattern, err := p.pattern()
		return compare{of, literal{}, pattern}, errors.Join(err, p.expect(")"))
	}
	f, is := functions[name]
	if !is {
		return nil, p.errorf("there is no function %s", name)
	}
	before := maps.Clone(p.e.missing)
	args, err := p.values(")")
	if p.whole && (name == "is_null" || name == "is_not_null") {
		p.e.missing = before // it asks whether they are there
	}
	if err == nil && (len(args) < f.least || len(args) > f.most) {
		err = p.errorf("%s has %d arguments, wants %d", name, len(args), f.least)
	}
	return call{args, f.do}, err
}

// members reads the names and indexes after item.
func (p *parser) members() (node, error) {
	return p.membersOf(item{}, nil)
}

// membersOf reads the names and indexes after a node with a path.
func (p *parser) membersOf(n node, path []string) (node, error) {
	plain := true // all steps are names
	for {
		token, more := p.take(".", "?.", "[")
		if !more {
			break
		}
		at, err := p.memberName(token)
		if err != nil {
			return nil, err
		}
		n = member{n, at}
		name, isName := at.(literal)
		text, isText := name.v.(string)
		if plain = plain && isName && isText; plain {
			path = append(path, text)
		}
	}
	if len(path) > 0 {
		p.e.missing["item."+strings.Join(path, ".")] = path
	}
	return n, nil
}

func (p *parser) memberName(after string) (node, error) {
	if after == "[" {
		at, err := p.or()
		if err != nil {
			return nil, err
		}
		return at, p.expect("]")
	}
	name := p.peek()
	if name == "" || !isName(name) && (name[0] < '0' || name[0] > '9') {
		return nil, p.unexpected("the name of a field")
	}
	p.at += len(name)
	return literal{name}, nil
}
