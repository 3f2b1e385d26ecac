// Package arch holds the house to its floor plan.
//
// The plan is data, in plan.go (which package lies on which floor), rules.go
// (what must not be imported or called where, and why) and words.go (what must
// not be written anywhere). [Check] reads a source tree with go/parser and
// reports every place that differs; the tests run it on this repository and on
// small false trees in which each rule is broken once.
//
// To move a wall, write a decision record under docs/decisions first and change
// the table with it.
package arch
