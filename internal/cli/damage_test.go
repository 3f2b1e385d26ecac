package cli

import (
	"github.com/rogpeppe/go-internal/testscript"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// damageFixture runs SQL on the store behind its back.
func damageFixture(ts *testscript.TestScript, _ bool, args []string) {
	c, err := sqlite.OpenConn(ts.MkAbs("s.db"), sqlite.OpenReadWrite, sqlite.OpenWAL)
	ts.Check(err)
	ts.Check(sqlitex.ExecuteTransient(c, args[0], nil))
	ts.Check(c.Close())
}
