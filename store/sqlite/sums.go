package sqlite

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// sumOf returns a checksum of the texts of a row, for its column texts. Null counts as the empty
// text. It runs for each message, so it reads eight bytes at a time and copies nothing.
func sumOf(texts ...string) int64 {
	sum := uint64(0)
	for _, text := range texts {
		sum = (sum ^ uint64(len(text))) * mix
		for ; len(text) >= 8; text = text[8:] {
			sum = (bits.RotateLeft64(sum, 29) ^ binary.LittleEndian.Uint64([]byte(text[:8]))) * mix
		}
		for i := range len(text) {
			sum = (bits.RotateLeft64(sum, 29) ^ uint64(text[i])) * mix
		}
	}
	return int64(uint32(sum ^ sum>>32))
}

// mix is odd: two different sums stay different when both are multiplied by it.
const mix = 0x9E3779B97F4A7C15

// textOf returns a text that may be null.
func textOf(v any) string {
	text, _ := v.(string)
	return text
}

// summed lists the tables whose rows have a sum of texts, with a name for the row, the column of
// the sum, and the texts in their order. Bodies have hashes of their own.
var summed = [...]struct{ subject, table, sum, texts string }{
	{"lower(hex(id))", "message", "texts", "type, key, stream, dedupe, headers, origin"},
	{"printf('failure %d of position %d', ordinal, pos)", "failure", "texts", "decision, reason, text, doc"},
	{"printf('attachment of failure %d of position %d', failure, pos)", "attachment", "texts", "name, cast(data as text)"},
	{"printf('note on letter %d', letter)", "note", "texts", "by, text"},
	{"printf('original of position %d', pos)", "original", "texts", "headers, by"},
	{"lower(hex(id))", "letter", "rule_sum", "rule"},
	{"lower(hex(id))", "letter", "note_sum", "note"},
	{"name", "queue", "texts", "settings"},
	{"printf('document %s of space %s', key, space)", "document", "texts", "space, key, value, label, owner, by"},
}

// counted lists the tables whose rows have a sum of numbers. The column sums computes the value
// that sum has to have.
var counted = [...]struct{ subject, table string }{
	{"name", "queue"},
	{"lower(hex(id))", "message"},
	{"printf('position %d', pos)", "pending"},
	{"printf('position %d', pos)", "log"},
	{"printf('batch %d', n)", "batch"},
	{"printf('failure %d of position %d', ordinal, pos)", "failure"},
	{"printf('attachment of failure %d of position %d', failure, pos)", "attachment"},
	{"printf('note on letter %d', letter)", "note"},
	{"printf('original of position %d', pos)", "original"},
	{"lower(hex(id))", "letter"},
	{"printf('document %s of space %s', key, space)", "document"},
}

// checkSums finds rows that differ from what was written.
func checkSums(c conn, r *store.Report) error {
	for _, of := range counted {
		query := fmt.Sprintf("select %s from %s where sum is not sums limit %d", of.subject, of.table, maxViolations)
		if err := c.each(query, func(row rows) error {
			r.Violations = append(r.Violations, store.Violation{
				Rule: of.table + "-sum", Subject: dashed(row.ColumnText(0)),
				Text: "one of its numbers or moments is not the one that was written",
			})
			return nil
		}); err != nil {
			return err
		}
	}
	for _, of := range summed {
		n := strings.Count(of.texts, ",") + 1
		texts, found := make([]string, n), 0
		query := fmt.Sprintf("select %s, %s, %s from %s where %[2]s is not null", of.subject, of.sum, of.texts, of.table)
		if err := c.each(query, func(row rows) error {
			for i := range texts {
				texts[i] = row.ColumnText(2 + i)
			}
			if sumOf(texts...) != row.ColumnInt64(1) && found < maxViolations {
				found++
				r.Violations = append(r.Violations, store.Violation{
					Rule: of.table + "-sum", Subject: dashed(row.ColumnText(0)),
					Text: "one of its texts is not the one that was written",
				})
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// messageSum returns the sum of the texts of a message.
func messageSum(m *nixie.Message, headers, origin string) int64 {
	return sumOf(m.Type, m.Key, m.Stream, m.DedupeKey, headers, origin)
}
