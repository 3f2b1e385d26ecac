package sqlite

import (
	"embed"

	"github.com/nixie-go/nixie/internal/sqlfile"
)

//go:embed sql/*.sql
var sqlFiles embed.FS

// sqlText returns a statement of the folder sql, or a part of one, by the name of its file. Its
// arguments have the order of the header.
func sqlText(name string) string { return sqlTexts(name) }

var sqlTexts = sqlfile.Text(sqlFiles, "?")
