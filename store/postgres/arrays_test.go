package postgres

import (
	"reflect"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"
)

// Arrays that are written in one go are read by the driver as they were given.
func TestArrays(t *testing.T) {
	types := pgtype.NewMap()
	registerArrays(types)
	for _, c := range []struct {
		oid   uint32
		value any
		plain bool // written by us
	}{
		{pgtype.Int8ArrayOID, []int64{1, -2, 1 << 62}, true},
		{pgtype.Int8ArrayOID, []int64{}, true},
		{pgtype.Int8ArrayOID, []int64(nil), true},
		{pgtype.Int8ArrayOID, []int32{1, -2}, false},
		{pgtype.Int4ArrayOID, []int64{1, -2}, false},
		{pgtype.TextArrayOID, []string{"", "a\nb", "wörter"}, true},
		{pgtype.UUIDArrayOID, uuidList{{1}, {15: 2}}, true},
		{pgtype.ByteaArrayOID, [][]byte{{}, {0, 1, 2}, nil}, true},
	} {
		plan := types.PlanEncode(c.oid, pgtype.BinaryFormatCode, c.value)
		if _, ours := plan.(array); ours != c.plain {
			t.Errorf("%T is written by %T", c.value, plan)
		}
		data, err := types.Encode(c.oid, pgtype.BinaryFormatCode, c.value, []byte("before"))
		if err != nil {
			t.Fatal(err)
		}
		if data != nil {
			data = data[len("before"):]
		}
		got := reflect.New(reflect.TypeOf(c.value))
		if err := types.Scan(c.oid, pgtype.BinaryFormatCode, data, got.Interface()); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got.Elem().Interface(), c.value) {
			t.Errorf("%#v is read as %#v", c.value, got.Elem().Interface())
		}
	}
}
