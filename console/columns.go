package console

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/nixie-go/nixie"
)

// columns are those that a list of letters can have, in their order.
var columns = []string{
	"status", "died", "queue", "type", "reason", "class", "attempts", "redrives", "stream", "origin", "cause", "last error",
}

// usualColumns are those of a list that names none.
func usualColumns() []string { return []string{"status", "died", "queue", "cause"} }

// lettersTable is a list of letters that can be selected.
type lettersTable struct {
	Rows     []nixie.Letter
	Columns  []string
	Selected bool // all of them
}

// columnsOf returns the columns that a request asks for.
func columnsOf(r *http.Request) []string {
	var list []string
	for _, name := range columns {
		if slices.Contains(r.Form["col"], name) {
			list = append(list, name)
		}
	}
	if list == nil {
		return usualColumns()
	}
	return list
}

// column returns the text of a letter in a column that has only text.
func column(name string, l nixie.Letter) string {
	switch name {
	case "type":
		return l.Message.Type
	case "reason":
		return string(l.Reason)
	case "class":
		return string(l.Class)
	case "attempts":
		n, _ := l.Spent()
		return strconv.Itoa(n)
	case "redrives":
		return strconv.Itoa(l.Message.Redrives)
	case "stream":
		return l.Message.Stream
	case "origin":
		if o := l.Message.Origin; o != nil {
			return o.System + " " + o.Channel
		}
	case "last error":
		return l.Message.LastFailure
	}
	return ""
}

// columnName returns what a value is called where no head of a column is near, as on a phone; "" is
// nothing, because the value says it.
func columnName(name string) string {
	if slices.Contains([]string{"status", "queue", "cause", "last error", "reason"}, name) {
		return ""
	}
	return name
}

// columnClass returns the class of a column, "" for none.
func columnClass(name string) string {
	switch name {
	case "cause", "last error":
		return "wide"
	case "attempts", "redrives":
		return "n"
	case "died":
		return "nowrap"
	}
	return ""
}
