package nixie

import (
	"encoding/hex"
	"strings"
)

// ID names a message, a letter or an operation. It is a UUID of version 7 (RFC 9562), so IDs sort
// by the time at which they were made. The zero ID means none: a store gives a message its ID when
// it accepts the message.
type ID [16]byte

// IsZero reports whether id is the zero ID.
func (id ID) IsZero() bool { return id == ID{} }

// String returns the usual form of 36 characters, or the empty string for the zero ID.
func (id ID) String() string {
	var b [36]byte
	return string(id.Append(b[:0]))
}

// Append adds the text of String.
func (id ID) Append(to []byte) []byte {
	if id.IsZero() {
		return to
	}
	var b [36]byte
	hex.Encode(b[:8], id[:4])
	hex.Encode(b[9:13], id[4:6])
	hex.Encode(b[14:18], id[6:8])
	hex.Encode(b[19:23], id[8:10])
	hex.Encode(b[24:], id[10:])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return append(to, b[:]...)
}

// The fewest digits of an ending by which [ID.EndsWith] and stores find an ID.
const MinEnding = 6

// EndsWith reports whether the ID ends with some digits, at least [MinEnding], in small letters and
// without dashes. People type them. A filter finds letters by the ends of their own IDs, and
// messages by those of theirs.
func (id ID) EndsWith(ending string) bool {
	return len(ending) >= MinEnding && !id.IsZero() && strings.HasSuffix(hex.EncodeToString(id[:]), ending)
}

// MarshalText makes an ID a JSON string.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (id *ID) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*id = ID{}
		return nil
	}
	parsed, err := ParseID(string(text))
	if err != nil {
		return err
	}
	*id = parsed
	return nil
}

// ParseID reads the form of 36 characters, in upper or lower case.
func ParseID(s string) (ID, error) {
	var id ID
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return ID{}, Errorf(CodeInvalid, "%q is not an ID: want 36 characters like 01890a5d-ac96-774b-bcce-b302099a8057", clip(s, 64))
	}
	plain := s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:]
	if _, err := hex.Decode(id[:], []byte(plain)); err != nil {
		return ID{}, Errorf(CodeInvalid, "%q is not an ID: %v", s, err)
	}
	return id, nil
}
