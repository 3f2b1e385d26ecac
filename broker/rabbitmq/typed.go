package rabbitmq

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	amqp "github.com/rabbitmq/amqp091-go"
)

// A field of a table of AMQP has one of some types, and a header of a record is bytes. typed keeps
// the fields that are no text, so that they come out as they were: each is a list in JSON of its
// type, as AMQP names it, and its value.
type typed map[string]json.RawMessage

// mostDeep limits how deeply fields nest; the client library reads no deeper ones.
const mostDeep = 33

// pack writes a field with its type.
func pack(value any) any {
	switch v := value.(type) {
	case nil:
		return []any{"V"}
	case bool:
		return []any{"t", v}
	case uint8:
		return []any{"B", v}
	case int8:
		return []any{"b", v}
	case int16:
		return []any{"s", v}
	case uint16:
		return []any{"u", v}
	case int32:
		return []any{"I", v}
	case uint32:
		return []any{"i", v}
	case int64:
		return []any{"l", v}
	case float32:
		return []any{"f", math.Float32bits(v)} // JSON has no infinity
	case float64:
		return []any{"d", strconv.FormatUint(math.Float64bits(v), 16)}
	case amqp.Decimal:
		return []any{"D", v.Scale, v.Value}
	case string:
		if utf8.ValidString(v) {
			return []any{"S", v}
		}
		return []any{"S64", []byte(v)}
	case []byte:
		return []any{"x", v}
	case time.Time:
		return []any{"T", v.Unix()}
	case []any:
		list := []any{"A"}
		for _, one := range v {
			list = append(list, pack(one))
		}
		return list
	case amqp.Table:
		list := []any{"F"}
		for _, name := range sortedNames(v) {
			list = append(list, base64.StdEncoding.EncodeToString([]byte(name)), pack(v[name]))
		}
		return list
	}
	return []any{"S", fmt.Sprint(value)} // the client library knows no other type
}

// unpack reads what pack wrote. It returns false for anything else.
func unpack(text json.RawMessage, depth int) (value any, ok bool) {
	var parts []json.RawMessage
	var kind string
	if depth > mostDeep || json.Unmarshal(text, &parts) != nil || len(parts) == 0 || json.Unmarshal(parts[0], &kind) != nil {
		return nil, false
	}
	rest := parts[1:]
	switch kind {
	case "V":
		return nil, len(rest) == 0
	case "A":
		list := make([]any, len(rest))
		for n := range rest {
			if list[n], ok = unpack(rest[n], depth+1); !ok {
				return nil, false
			}
		}
		return list, true
	case "F":
		return unpackTable(rest, depth)
	case "D":
		if len(rest) != 2 {
			return nil, false
		}
		scale, one := read[uint8](rest[0])
		digits, other := read[int32](rest[1])
		return amqp.Decimal{Scale: scale.(uint8), Value: digits.(int32)}, one && other
	}
	if len(rest) != 1 {
		return nil, false
	}
	return unpackOne(kind, rest[0])
}

func unpackTable(parts []json.RawMessage, depth int) (any, bool) {
	table := amqp.Table{}
	if len(parts)%2 != 0 {
		return nil, false
	}
	for n := 0; n < len(parts); n += 2 {
		var name []byte
		value, ok := unpack(parts[n+1], depth+1)
		if !ok || json.Unmarshal(parts[n], &name) != nil {
			return nil, false
		}
		table[string(name)] = value
	}
	return table, true
}

// read reads one value of JSON into a T.
func read[T any](text json.RawMessage) (any, bool) {
	var v T
	err := json.Unmarshal(text, &v)
	return v, err == nil
}

func unpackOne(kind string, text json.RawMessage) (any, bool) {
	switch kind {
	case "t":
		return read[bool](text)
	case "B":
		return read[uint8](text)
	case "b":
		return read[int8](text)
	case "s":
		return read[int16](text)
	case "u":
		return read[uint16](text)
	case "I":
		return read[int32](text)
	case "i":
		return read[uint32](text)
	case "l":
		return read[int64](text)
	case "S":
		return read[string](text)
	case "x":
		return read[[]byte](text)
	case "S64":
		bytes, ok := read[[]byte](text)
		return string(bytes.([]byte)), ok
	case "T":
		seconds, ok := read[int64](text)
		return time.Unix(seconds.(int64), 0), ok
	case "f":
		bits, ok := read[uint32](text)
		return math.Float32frombits(bits.(uint32)), ok
	case "d":
		digits, ok := read[string](text)
		bits, err := strconv.ParseUint(digits.(string), 16, 64)
		return math.Float64frombits(bits), ok && err == nil
	}
	return nil, false
}

// shown writes a field that is no text for people and filters. It says nothing of the type.
func shown(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case string:
		return v
	case []byte:
		return string(v)
	case time.Time:
		return v.UTC().Format(time.RFC3339)
	case []any, amqp.Table:
		text, err := json.Marshal(plain(v))
		if err != nil {
			return fmt.Sprint(v)
		}
		return string(text)
	}
	return fmt.Sprint(value)
}

// plain makes a value that JSON can write.
func plain(value any) any {
	switch v := value.(type) {
	case []any:
		list := make([]any, len(v))
		for n := range v {
			list[n] = plain(v[n])
		}
		return list
	case amqp.Table:
		object := map[string]any{}
		for name, one := range v {
			object[name] = plain(one)
		}
		return object
	case nil, bool, string:
		return v
	case int8, int16, int32, int64, uint8, uint16, uint32:
		return v
	}
	return shown(value)
}

// sortedNames lists the names of a table's fields in an order that does not change.
func sortedNames(t amqp.Table) []string {
	names := make([]string, 0, len(t))
	for name := range t {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
