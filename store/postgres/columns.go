package postgres

import (
	"database/sql/driver"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// idColumn reads an ID, zero for null, from any driver.
type idColumn nixie.ID

// Scan implements sql.Scanner.
func (id *idColumn) Scan(value any) error {
	*id = idColumn{}
	switch v := value.(type) {
	case nil:
		return nil
	case string:
		return (*nixie.ID)(id).UnmarshalText([]byte(v))
	case []byte:
		if len(v) == len(id) {
			copy(id[:], v)
			return nil
		}
		return (*nixie.ID)(id).UnmarshalText(v)
	case [16]byte:
		*id = v
		return nil
	}
	return fmt.Errorf("%T is no ID", value)
}

// hashColumn reads a hash, zero for one of another length.
type hashColumn nixie.Hash

// Scan implements sql.Scanner.
func (h *hashColumn) Scan(value any) error {
	*h = hashColumn{}
	switch v := value.(type) {
	case []byte:
		copy(h[:], v)
	case string: // as text: \x and digits
		if raw, err := hex.DecodeString(v[min(2, len(v)):]); err == nil {
			copy(h[:], raw)
		}
	}
	return nil
}

// textColumn reads a text, empty for null.
type textColumn string

// Scan implements sql.Scanner.
func (t *textColumn) Scan(value any) error {
	switch v := value.(type) {
	case nil:
		*t = ""
	case string:
		*t = textColumn(v)
	case []byte:
		*t = textColumn(v)
	default:
		return fmt.Errorf("%T is no text", value)
	}
	return nil
}

// momentColumn reads a moment.
type momentColumn time.Time

// Scan implements sql.Scanner.
func (m *momentColumn) Scan(value any) error {
	switch v := value.(type) {
	case nil:
		*m = momentColumn{}
	case int64:
		*m = momentColumn(lifecycle.Moment(v))
	default:
		return fmt.Errorf("%T is no moment", value)
	}
	return nil
}

// binaryRow returns the values of a row as PostgreSQL sent them, for callers that read very many
// rows. It returns nil where the driver was told to ask for texts. A text is the same both ways.
func binaryRow(r row) [][]byte {
	raw, ok := r.(interface {
		RawValues() [][]byte
		FieldDescriptions() []pgconn.FieldDescription
	})
	if !ok || slices.ContainsFunc(raw.FieldDescriptions(), func(f pgconn.FieldDescription) bool {
		return f.Format != pgx.BinaryFormatCode && f.DataTypeOID != pgtype.TextOID
	}) {
		return nil
	}
	return raw.RawValues()
}

// number reads a bigint as PostgreSQL sends it.
func number(raw []byte) int64 { return int64(binary.BigEndian.Uint64(raw)) }

func uuids(ids []nixie.ID) [][16]byte {
	list := make([][16]byte, len(ids))
	for i, id := range ids {
		list[i] = id
	}
	return list
}

// idOrNull returns an ID as an argument.
func idOrNull(id nixie.ID) *[16]byte {
	if id.IsZero() {
		return nil
	}
	raw := [16]byte(id)
	return &raw
}

// IDs as arguments: a driver that was told not to ask the server for types wants texts.
type (
	uuid          [16]byte
	uuidList      [][16]byte
	uuidsAndNulls []*[16]byte
)

// Value implements driver.Valuer.
func (id uuid) Value() (driver.Value, error) { return hex.EncodeToString(id[:]), nil }

// Value implements driver.Valuer.
func (list uuidList) Value() (driver.Value, error) {
	return "{" + strings.Join(eachOf(list, func(id [16]byte) string { return hex.EncodeToString(id[:]) }), ",") + "}", nil
}

// Value implements driver.Valuer.
func (list uuidsAndNulls) Value() (driver.Value, error) {
	return "{" + strings.Join(eachOf(list, func(id *[16]byte) string {
		if id == nil {
			return "null"
		}
		return hex.EncodeToString(id[:])
	}), ",") + "}", nil
}

// argument returns a value as every driver takes it.
func argument(value any) any {
	switch v := value.(type) {
	case [16]byte:
		return uuid(v)
	case *[16]byte:
		if v == nil {
			return nil
		}
		return uuid(*v)
	case [][16]byte:
		return uuidList(v)
	case []*[16]byte:
		return uuidsAndNulls(v)
	}
	return value
}

// fromJSON reads a text of JSON; an empty one says nothing.
func fromJSON(text string, into any) error {
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return fmt.Errorf("it is no JSON of ours: %w", err)
	}
	return nil
}

// toJSON returns a value as a text, empty if there is nothing to say.
func toJSON(empty bool, value any) string {
	if empty {
		return ""
	}
	data, err := json.Marshal(value)
	if err != nil {
		panic("postgres: a value of ours is no JSON: " + err.Error())
	}
	return string(data)
}
