package privacy

import "strings"

// prefix describes tokens with a known beginning.
type prefix struct {
	text   string
	least  int  // bytes after it, at least
	dots   bool // points belong to the token
	random bool // the token also has to look random
}

// prefixes are in the order of their first letters. The method token has a list of those letters.
var prefixes = [...]prefix{
	{text: "AGE-SECRET-KEY-1", least: 20}, {text: "AIza", least: 30},
	{text: "AKIA", least: 16}, {text: "ASIA", least: 16}, {text: "ABIA", least: 16}, {text: "ACCA", least: 16},
	{text: "GOCSPX-", least: 16}, {text: "NRAK-", least: 16}, {text: "SG.", least: 20, dots: true, random: true},
	{text: "dckr_pat_", least: 16}, {text: "dop_v1_", least: 32}, {text: "figd_", least: 20, random: true},
	{text: "ghp_", least: 20}, {text: "gho_", least: 20}, {text: "ghu_", least: 20}, {text: "ghs_", least: 20}, {text: "ghr_", least: 20},
	{text: "github_pat_", least: 20}, {text: "glpat-", least: 16}, {text: "gldt-", least: 16}, {text: "glrt-", least: 16},
	{text: "hf_", least: 24, random: true}, {text: "hvs.", least: 20}, {text: "hvb.", least: 20}, {text: "lin_api_", least: 20},
	{text: "npm_", least: 30},
	{text: "pypi-", least: 40}, {text: "rk_live_", least: 10}, {text: "rk_test_", least: 10},
	{text: "shpat_", least: 20}, {text: "shpss_", least: 20}, {text: "sk-", least: 20, random: true},
	{text: "sk_live_", least: 10}, {text: "sk_test_", least: 10}, {text: "sq0atp-", least: 16}, {text: "sq0csp-", least: 16},
	{text: "whsec_", least: 16}, {text: "xapp-", least: 10, random: true}, {text: "xoxa-", least: 10}, {text: "xoxb-", least: 10},
	{text: "xoxe-", least: 10}, {text: "xoxe.", least: 10, dots: true}, {text: "xoxp-", least: 10}, {text: "xoxr-", least: 10},
	{text: "xoxs-", least: 10},
	{text: "ya29.", least: 16},
}

// token hides a token after its known beginning.
func (s *scanner) token() bool {
	rest := s.rest()
	if strings.IndexByte("AGNSdfghlnprswxy", rest[0]) < 0 {
		return false
	}
	for _, p := range prefixes {
		if rest[0] != p.text[0] || !strings.HasPrefix(rest, p.text) {
			continue
		}
		from := s.at + len(p.text)
		if p.random && !random(s.text[from:min(len(s.text), from+p.least)]) {
			continue
		}
		to := s.endOf(from, func(b byte) bool { return isName(b) && (b != '.' || p.dots) })
		if to-from < p.least && !s.cutAt(to) {
			continue
		}
		return s.hide(from, to)
	}
	return false
}

// cutAt reports whether the text has the mark of a cut at an offset.
func (s *scanner) cutAt(at int) bool { return strings.HasPrefix(s.text[at:], "…") }

const (
	minWebToken     = 8       // bytes of each of the first two parts of a JSON web token
	maxWebTokenHead = 1 << 10 // bytes of the first
)

// webToken hides a JSON web token: two parts in base64, which begin like JSON, and a signature.
func (s *scanner) webToken() bool {
	const begin = "eyJ"
	if !strings.HasPrefix(s.rest(), begin) {
		return false
	}
	part := func(b byte) bool { return isName(b) && b != '.' }
	first := s.at
	for first < len(s.text) && first < s.at+maxWebTokenHead && part(s.text[first]) {
		first++
	}
	if s.byteAt(first) != '.' {
		return first-s.at >= minWebToken && s.cutAt(first) && s.hide(s.at+len(begin), first)
	}
	second := s.endOf(first+1, part)
	if first-s.at < minWebToken || second-first <= minWebToken && !s.cutAt(second) {
		return false
	}
	to := second
	if s.byteAt(second) == '.' {
		to = s.endOf(second+1, part)
	}
	return s.hide(s.at+len(begin), to)
}
