// Package trust writes docs/trust.md: what Nixie promises and what shows it, what
// broke in systems of this kind and which test would find it here, and what broke
// in Nixie itself.
//
// Its data are the tables of this package, the promises of docs/guarantees.md and
// the numbers of the last deep run in deep.json. Rows stand in the order of their
// numbers. To add one, write it into its table and run make trust: a test that
// does not exist, a number that is missing and a page that is stale are failures.
//
// Tests are named as in the documents: package.TestName, or suite.Group/Clause for
// a clause of the suite for stores, separated by spaces.
package trust
