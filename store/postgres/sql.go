package postgres

import (
	"embed"
	"slices"
	"strings"
	"sync"

	"github.com/nixie-go/nixie/internal/sqlfile"
)

// Statements of more than one line are files in the folder sql. Go names them with ".sql" where it
// would write a shorter statement, and gives their arguments in the order of their headers.
//
//go:embed sql/*.sql
var sqlFolder embed.FS

// texts has the statements by name. The schema is not known yet: @. stands for it.
var texts = sync.OnceValue(func() map[string]string {
	all, err := sqlfile.Read(sqlFolder, "$")
	if err != nil {
		panic(err) // a test reads them all
	}
	texts := make(map[string]string, len(all))
	for name, f := range all {
		texts[name] = f.Text
	}
	return texts
})

// which says which messages or letters a statement is about, as a condition behind a column of
// positions: those with the IDs $1, or with the positions $1.
var which = sync.OnceValue(func() conditions {
	return conditions{
		ids:       " = any(array(" + texts()["messages_with"] + "))",
		letters:   " = any(array(" + texts()["letters_with"] + "))",
		positions: " = any($1::bigint[])",
	}
})

type conditions struct{ ids, letters, positions string }

// fill returns a statement with what its file leaves open: names in braces, and texts for them.
func fill(file string, open ...string) string {
	text := texts()[strings.TrimSuffix(file, ".sql")]
	for pair := range slices.Chunk(open, 2) {
		text = strings.ReplaceAll(text, "{"+pair[0]+"}", pair[1])
	}
	return text
}

// textsOf returns the statements for a schema, by the names of their files.
func textsOf(schema string) map[string]string {
	own := make(map[string]string, len(texts()))
	for name, text := range texts() {
		own[name+".sql"] = inSchema(text, schema)
	}
	return own
}

// inSchema names the schema in a statement.
func inSchema(text, schema string) string {
	return strings.NewReplacer("@.", schema+".", "{schema}", schema).Replace(text)
}
