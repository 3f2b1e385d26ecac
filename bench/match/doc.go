// Package match lets entrants of package contest measure themselves in turns and
// reports what came of it. A programme says who plays, what, on which ground and
// for which targets; each measurement is a process of its own.
package match
