package arch

import (
	"regexp"
	"slices"
	"strings"
)

// licences lists sentences that a licence cannot do without, in lower case with single spaces. What
// ships has a licence that asks for a notice and nothing else. The MPL asks that changes of its
// files are published: that is fine for a test and a burden for users who vendor us.
var licences = []struct {
	name, text string
	testsOnly  bool
}{
	{"Apache-2.0", "apache license version 2.0, january 2004", false},
	{"BSD", "redistribution and use in source and binary forms, with or without modification, are permitted", false},
	{"ISC", "distribute this software for any purpose with or without fee is hereby granted", false},
	{"MIT", "permission is hereby granted, free of charge, to any person obtaining a copy", false},
	{"MPL-2.0", "mozilla public license version 2.0", true},
}

var (
	spaces = regexp.MustCompile(`\s+`)
	// refusedLicence matches licences that restrict what is linked with them. The MPL names some of
	// them in its own text.
	refusedLicence = regexp.MustCompile(`gnu (affero |lesser )?general public license|server side public license|business source license`)
	licenceFile    = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying)([.-][\w.-]+)?$`)
	// inventory matches the name of a list of what others wrote. It is not read: what of it is
	// compiled into ours is a module in our go.mod and read there.
	inventory = regexp.MustCompile(`(?i)(3rd|third)[-_]?party`)
)

// Licence names the licences in a text, and returns why they do not do, or nothing.
func Licence(text string, ships bool) (names []string, why string) {
	flat := spaces.ReplaceAllString(strings.ToLower(text), " ")
	for _, l := range licences {
		if !strings.Contains(flat, l.text) {
			continue
		}
		names = append(names, l.name)
		if l.testsOnly && ships {
			why = l.name + " is accepted for tests only, and this ships"
		}
	}
	if bad := refusedLicence.FindString(flat); bad != "" && !slices.Contains(names, "MPL-2.0") {
		why = "the " + bad + " is not permissive"
	} else if len(names) == 0 {
		why = "no licence was recognised: read it, and teach internal/proof/arch/licence.go its words if it is permissive"
	}
	return names, why
}

// ships reports whether a file that is not for tests imports from the module.
func (t *Tree) ships(module string) bool {
	for _, p := range t.packages {
		for _, f := range p.files {
			for _, spec := range f.syntax.Imports {
				if p.shipped(f) && matches([]string{module + "/..."}, importPath(spec)) {
					return true
				}
			}
		}
	}
	return false
}
