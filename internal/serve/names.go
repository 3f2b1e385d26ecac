package serve

import (
	"net/http"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/console"
)

// ByHeader returns the identity of requests that a proxy on this machine passes on: each has
// exactly one header with the name of the person, who may act. All others may do nothing.
func ByHeader(header string) (func(*http.Request) (string, console.Rights), error) {
	token := func(r rune) bool {
		return r < 0x7f && r > ' ' && !strings.ContainsRune(`()<>@,;:\"/[]?={}`, r)
	}
	if header == "" || strings.ContainsFunc(header, func(r rune) bool { return !token(r) }) {
		return nil, nixie.Errorf(nixie.CodeInvalid, "%.40q is no name of a header: give one such as X-Forwarded-User", header)
	}
	return func(r *http.Request) (string, console.Rights) {
		if names := r.Header.Values(header); len(names) == 1 && strings.TrimSpace(names[0]) != "" {
			return names[0], console.Act
		}
		return "", console.None
	}, nil
}
