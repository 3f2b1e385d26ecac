package sqlite_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/sqlite"
)

// The end of an ID finds a letter by an index. That of a message is looked for in the index of IDs,
// which is small: the table with the bodies is not read.
func TestEndingsReadIndexes(t *testing.T) {
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "s.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // a test
	letters, messages, err := s.NamingPlans(&nixie.Filter{Endings: []string{"1a2b3c4d"}})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(letters, "INDEX letter_ending") || strings.Contains(letters, "SCAN letter") {
		t.Errorf("letters are found by %s", letters)
	}
	if !strings.Contains(messages, "SCAN message USING COVERING INDEX message_id") {
		t.Errorf("messages are found by %s", messages)
	}
}
