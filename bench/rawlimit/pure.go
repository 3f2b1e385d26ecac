//go:build !cgo

package rawlimit

func drivers() []driver {
	return []driver{{"zombiezen", "zombiezen.com/go/sqlite (modernc.org/sqlite)", openZombiezen}}
}
