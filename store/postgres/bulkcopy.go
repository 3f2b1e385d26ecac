package postgres

import "slices"

// copy adds the COPY of many rows, and returns false if these rows do not go by COPY. Columns that
// are null in all of them are left out.
func (s *bulkWriter[T, K]) copy(t *tx, list []T) bool {
	if !t.copies(len(list), copyOthers) {
		return false
	}
	said := make([]column[T], 0, len(s.columns))
	for _, c := range s.columns {
		switch {
		case c.usual != nil && !slices.ContainsFunc(list, func(row T) bool { return !c.isNull(row) }):
		case c.put == nil:
			return false
		default:
			said = append(said, c)
		}
	}
	t.copyTo(s.table, &copying{columns: eachOf(said, func(c column[T]) string { return c.name }), rows: len(list),
		row: func(c *copying, at int) {
			for i := range said {
				if said[i].isNull(list[at]) {
					c.null()
				} else {
					said[i].put(c, list[at])
				}
			}
		}})
	return true
}

// putting returns a function that writes values of a type of PostgreSQL for COPY, nil for types
// that it does not know: rows with those go as arrays.
func putting[T, V any](sql string, value func(T) V) func(*copying, T) {
	size := map[string]int{"smallint": 2, "int": 4, "bigint": 8}[sql]
	switch value := any(value).(type) {
	case func(T) int:
		return func(c *copying, row T) { c.number(int64(value(row)), size) }
	case func(T) int64:
		return func(c *copying, row T) { c.number(value(row), size) }
	case func(T) string:
		return func(c *copying, row T) { c.some(value(row)) }
	case func(T) bool:
		return func(c *copying, row T) { c.flag(value(row)) }
	case func(T) [16]byte:
		return func(c *copying, row T) { id := value(row); c.bytes(id[:]) }
	case func(T) *[16]byte:
		return func(c *copying, row T) {
			if id := value(row); id != nil {
				c.bytes(id[:])
			} else {
				c.null()
			}
		}
	}
	return nil
}
