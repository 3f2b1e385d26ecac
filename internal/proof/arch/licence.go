package arch

import (
	"regexp"
	"slices"
	"strings"
)

// The licences that a library may have. Those fit to ship may be part of the
// binary: they ask for a notice and nothing else. Those fit to test ask that
// changes of their files are published, which is fine for a test and a burden
// for users who vendor us.
var (
	fitToShip = []string{"Apache-2.0", "BSD", "ISC", "MIT"}
	fitToTest = []string{"MPL-2.0"}
)

// licenceMarks are sentences that a licence cannot do without, most telling
// first, in lower case with single spaces.
var licenceMarks = []struct{ name, text string }{
	{"AGPL", "gnu affero general public license"},
	{"LGPL", "gnu lesser general public license version"},
	{"GPL", "gnu general public license version"},
	{"SSPL", "server side public license"},
	{"BUSL", "business source license"},
	{"MPL-2.0", "mozilla public license version 2.0"},
	{"Apache-2.0", "apache license version 2.0, january 2004"},
	{"ISC", "permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted"},
	{"ISC", "permission to use, copy, modify, and distribute this software for any purpose with or without fee is hereby granted"},
	{"MIT", "permission is hereby granted, free of charge, to any person obtaining a copy"},
	{"BSD", "redistribution and use in source and binary forms, with or without modification, are permitted"},
}

var (
	spaces      = regexp.MustCompile(`\s+`)
	licenceFile = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying)([.-][\w.-]+)?$`)

	// inventory is the name of a list of what others wrote. It is not read: what
	// of it is compiled into ours is a module in our go.mod and read there.
	inventory = regexp.MustCompile(`(?i)(3rd|third)[-_]?party`)
)

// Licences names the licences that text holds, in the order of the marks. The
// secondary licences that the MPL names in its own text are not counted.
func Licences(text string) []string {
	flat := spaces.ReplaceAllString(strings.ToLower(text), " ")
	var found []string
	for _, mark := range licenceMarks {
		if strings.Contains(flat, mark.text) && !slices.Contains(found, mark.name) {
			found = append(found, mark.name)
		}
	}
	if slices.Contains(found, "MPL-2.0") {
		found = slices.DeleteFunc(found, func(name string) bool { return strings.HasSuffix(name, "GPL") })
	}
	return found
}

// Acceptable says why licences do not do for a library, or nothing. A library
// that ships may not have a licence that is only fit for tests.
func Acceptable(licences []string, ships bool) string {
	if len(licences) == 0 {
		return "no licence was recognised: read it, and teach internal/proof/arch/licence.go its words if it is permissive"
	}
	for _, name := range licences {
		switch {
		case slices.Contains(fitToShip, name):
		case slices.Contains(fitToTest, name) && !ships:
		case slices.Contains(fitToTest, name):
			return name + " is accepted for tests only, and this ships"
		default:
			return name + " is not permissive"
		}
	}
	return ""
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
