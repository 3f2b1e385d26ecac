package app

import (
	"strings"
	"testing"
)

// An error about the URL of a store shows none of its passwords, also not those in parameters.
func TestErrorsHidePasswords(t *testing.T) {
	for _, url := range []string{
		"mysql://u:secret@h/db", "mysql://h/db?password=secret", "mysql://h/db?x=1&sslpassword=secret",
		"h/db?password=secret", "mysql://u:sec/ret@h:x/db",
	} {
		_, err := OpenStore(url, Options{})
		if err == nil || strings.Contains(err.Error(), "sec") {
			t.Errorf("%s: %v", url, err)
		}
	}
}
