package postgres

import (
	"encoding/binary"

	"github.com/jackc/pgx/v5/pgtype"
)

// Most arguments are arrays of very many values. The driver asks for each value how to encode it;
// here an array is encoded in one go.

// array is a codec of arrays that does not ask for each value.
type array struct {
	pgtype.Codec
	element uint32 // the type of a value
}

// registerArrays makes a connection use it.
func registerArrays(types *pgtype.Map) {
	for _, of := range [...]struct{ array, element uint32 }{
		{pgtype.Int8ArrayOID, pgtype.Int8OID}, {pgtype.TextArrayOID, pgtype.TextOID},
		{pgtype.UUIDArrayOID, pgtype.UUIDOID}, {pgtype.ByteaArrayOID, pgtype.ByteaOID},
	} {
		if known, ok := types.TypeForOID(of.array); ok {
			types.RegisterType(&pgtype.Type{Name: known.Name, OID: of.array, Codec: array{known.Codec, of.element}})
		}
	}
}

// PlanEncode implements pgtype.Codec.
func (a array) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if format == pgtype.BinaryFormatCode {
		switch value.(type) {
		case []int64:
			if a.element == pgtype.Int8OID {
				return a
			}
		case []string:
			if a.element == pgtype.TextOID {
				return a
			}
		case uuidList:
			if a.element == pgtype.UUIDOID {
				return a
			}
		case [][]byte:
			if a.element == pgtype.ByteaOID {
				return a
			}
		}
	}
	return a.Codec.PlanEncode(m, oid, format, value)
}

// Encode implements pgtype.EncodePlan.
func (a array) Encode(value any, to []byte) ([]byte, error) {
	switch list := value.(type) {
	case []int64:
		return appendArray(to, a.element, list, func(to []byte, n int64) []byte {
			return binary.BigEndian.AppendUint64(append(to, 0, 0, 0, 8), uint64(n))
		})
	case []string:
		return appendArray(to, a.element, list, func(to []byte, text string) []byte {
			return append(binary.BigEndian.AppendUint32(to, uint32(len(text))), text...)
		})
	case uuidList:
		return appendArray(to, a.element, list, func(to []byte, id [16]byte) []byte { return append(append(to, 0, 0, 0, 16), id[:]...) })
	case [][]byte:
		return appendArray(to, a.element, list, func(to []byte, data []byte) []byte {
			if data == nil {
				return append(to, 0xff, 0xff, 0xff, 0xff)
			}
			return append(binary.BigEndian.AppendUint32(to, uint32(len(data))), data...)
		})
	}
	return nil, nil
}

// appendArray encodes an array of one dimension; nil is null.
func appendArray[T any](to []byte, element uint32, list []T, each func([]byte, T) []byte) ([]byte, error) {
	if list == nil {
		return nil, nil
	}
	// The number of dimensions, whether a value is null, the type; then of the dimension the length
	// and the first index.
	dimensions := uint32(min(len(list), 1))
	to = binary.BigEndian.AppendUint32(to, dimensions)
	to = binary.BigEndian.AppendUint32(to, 1)
	to = binary.BigEndian.AppendUint32(to, element)
	if len(list) > 0 {
		to = binary.BigEndian.AppendUint32(to, uint32(len(list)))
		to = binary.BigEndian.AppendUint32(to, 1)
	}
	for _, value := range list {
		to = each(to, value)
	}
	return to, nil
}
