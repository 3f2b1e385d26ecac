// Package proof runs the seeded evidence of the repository and lists it.
//
// A proof draws everything from a seed and counts the cases that the seed stood for: crash
// points, kills, histories, steps. Seeds count up from 1 until the count of the tier is full:
//
//	tier   started by                       count
//	short  go test -short, make quick       a tenth of Quick, without servers
//	quick  go test, make test               Quick
//	long   NIXIE_PROOF=long, make proof     Long
//	deep   NIXIE_DEEP=folder, make deep     Deep; goes on after the last seed of the last run
//
// The first three take the same seeds each time. A deep run keeps what it has done in a file
// for each proof. Fuzz targets need no row: [Targets] finds them in the source.
package proof
