// Package lines has the protocol of processes that stay, such as those of nixie work --persistent:
// one line of JSON for a message in, and one for its answer out. It reads and writes no files.
//
// A process first writes [Ready]. Then it gets one message at a time, as [Append] writes it, and
// answers with a line that [Parse] reads: the object of a verdict with the ID of the message. In
// between it may write lines that report progress.
package lines
