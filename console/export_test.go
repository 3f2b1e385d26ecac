package console

// Patterns returns the paths of all pages below the prefix, as in patterns of net/http.
func Patterns() []string {
	var list []string
	for _, p := range screens() {
		list = append(list, p.path)
	}
	return list
}

// Posts returns the patterns of all addresses that take a form, below the prefix.
func Posts() []string {
	var list []string
	for _, p := range screens() {
		for name := range p.verbs {
			list = append(list, p.path+"/"+name)
		}
		for name := range p.forms {
			list = append(list, p.path+"/"+name)
		}
	}
	return list
}

// AtOnce asks the questions of a page.
var AtOnce = atOnce

// ThreadTime is the processor time of this thread; 0 where it is not known.
var ThreadTime = threadTime
