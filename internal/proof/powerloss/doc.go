// Package powerloss proves what package store/sqlite keeps when the disk does not: the power goes
// after every write and sync of the five core transactions (enqueue, claim, settle, bury, redrive
// item) and of random acts of every kind, and every call to the disk fails in every way. It holds
// tests only. They are not in the package of the store because they run without the race detector:
// there are thousands of small runs.
package powerloss
