// Package match measures the entrants of package contest alternately and reports the results. A
// programme names the entrants, the scenarios, the host and the targets. Each measurement is a
// process of its own.
package match
