package sqlite

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// sumOf is a checksum of what a row says in words, for its column texts; null counts as
// the empty text. It is counted for each message, eight bytes at a time and without a copy.
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

// mix is odd, so that two sums which differ still do when they were multiplied by it.
const mix = 0x9E3779B97F4A7C15

// textOf is a text that may be null.
func textOf(v any) string {
	text, _ := v.(string)
	return text
}

// summed are the tables whose rows have a sum of texts, with who the row is about and the
// texts in their order. Hashes of bodies are checked by themselves.
var summed = [...]struct{ subject, table, sum, texts string }{
	{"lower(hex(id))", "message", "texts", "type, key, stream, dedupe, headers, origin"},
	{"printf('failure %d of position %d', ordinal, pos)", "failure", "texts", "decision, reason, text, doc"},
	{"printf('attachment of failure %d of position %d', failure, pos)", "attachment", "texts", "name, cast(data as text)"},
	{"printf('note on letter %d', letter)", "note", "texts", "by, text"},
	{"printf('original of position %d', pos)", "original", "texts", "headers, by"},
	{"lower(hex(id))", "letter", "rule_sum", "rule"},
	{"lower(hex(id))", "letter", "note_sum", "note"},
	{"name", "queue", "texts", "settings"},
}

// counted are the tables whose rows have a sum of numbers: sums is what it has to be.
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
}

// checkSums finds rows that do not say any more what was written.
func checkSums(c conn, r *store.Report) error {
	for _, of := range counted {
		query := fmt.Sprintf("select %s from %s where sum is not sums limit %d", of.subject, of.table, maxViolations)
		if err := c.each(query, func(row rows) error {
			r.Violations = append(r.Violations, store.Violation{Rule: of.table + "-sum", Subject: dashed(row.ColumnText(0)), Text: "one of its numbers or moments is not the one that was written"})
			return nil
		}); err != nil {
			return err
		}
	}
	for _, of := range summed {
		n := strings.Count(of.texts, ",") + 1
		texts, found := make([]string, n), 0
		if err := c.each(fmt.Sprintf("select %s, %s, %s from %s", of.subject, of.sum, of.texts, of.table), func(row rows) error {
			for i := range texts {
				texts[i] = row.ColumnText(2 + i)
			}
			if sumOf(texts...) != row.ColumnInt64(1) && found < maxViolations {
				found++
				r.Violations = append(r.Violations, store.Violation{Rule: of.table + "-sum", Subject: dashed(row.ColumnText(0)), Text: "one of its texts is not the one that was written"})
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// messageSum is the sum of the texts of a message.
func messageSum(m *nixie.Message, headers, origin string) int64 {
	return sumOf(m.Type, m.Key, m.Stream, m.DedupeKey, headers, origin)
}
