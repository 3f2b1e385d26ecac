// Package arch holds the house to its floor plan.
//
// The plan is data: plan.go has the floor of each package, words.go the words that are not
// written, groups.go the bounds on sizes. [Check] reads a source tree with go/parser and reports
// each difference. The tests run it on this repository and on small false trees, each of which
// breaks one rule. What a linter can say (imports, clocks, exits, init) is in .golangci.yml.
//
// To move a wall, write a decision record under docs/decisions first and change
// the table with it.
package arch
