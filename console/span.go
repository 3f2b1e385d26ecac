package console

import (
	"net/http"
	"strconv"
)

// span is a page of a list that is known whole.
type span struct {
	From, To, All int // rows From to To−1 of All
	Before, Next  int // where the pages before and after begin; −1 is none
}

// spanOf returns the span that a request asks for by from.
func spanOf(r *http.Request, all, size int) span {
	from, _ := strconv.Atoi(r.FormValue("from")) // anything else is the first page
	from = min(max(from, 0), max(0, all-1))
	s := span{From: from, To: min(from+size, all), All: all, Before: -1, Next: -1}
	if from > 0 {
		s.Before = max(0, from-size)
	}
	if s.To < all {
		s.Next = s.To
	}
	return s
}
