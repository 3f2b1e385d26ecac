package sqlite

import (
	"embed"

	"github.com/nixie-go/nixie/internal/sqlfile"
)

//go:embed sql/*.sql
var sqlFiles embed.FS

// sqlText holds the statements of the folder sql, and parts of statements, by the names of their
// files. Arguments come in the order of the header of a file.
var sqlText = sqlfile.Texts(sqlFiles, "?")
