package sqlite

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestMovedStatements compares what is read from files with the texts that stood in Go before:
// testdata/moved.txt has a hash of each, made from that code.
func TestMovedStatements(t *testing.T) {
	data, err := os.ReadFile("testdata/moved.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		name, want, _ := strings.Cut(strings.TrimSpace(line), " ")
		if hash := sha256.Sum256([]byte(normalised(sqlText[name]))); hex.EncodeToString(hash[:])[:16] != want {
			t.Errorf("%s is not what it was: %s", name, sqlText[name])
		}
	}
}

// normalised has no white space but between words, and numbers arguments that had no number.
func normalised(text string) string {
	text = regexp.MustCompile(` ?([(),]) ?`).ReplaceAllString(strings.Join(strings.Fields(text), " "), "$1")
	n := 0
	return regexp.MustCompile(`\?\d*`).ReplaceAllStringFunc(text, func(mark string) string {
		if mark != "?" {
			return mark
		}
		n++
		return "?" + strconv.Itoa(n)
	})
}
