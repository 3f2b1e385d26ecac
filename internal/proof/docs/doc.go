// Package docs keeps the documents true: what they show is run, and where they
// point to exists. Its tests read README.md, the other documents at the root
// and all of docs/.
//
// A fenced block of language console or sh is a transcript. Lines that start
// with "$ " are commands; the lines up to the next command are the output it
// must have. Output that is not shown is not compared. In shown output, a line
// "..." stands for any number of lines and "..." inside a line for any text.
// A command goes on over lines that end with a backslash, and over a here
// document; the continuation may have the prompt "> ".
//
// All transcripts of a document run in order in one empty folder, with the
// binary nixie on the path, by sh. The working folder carries over from one
// command to the next, and so does the exit status to "echo $?"; variables do
// not. A command must exit with 0, unless its status is shown by an "echo $?"
// after it.
//
// The first line of a block may say more after its language:
//
//	```sh norun="needs a cluster"    the block is not run, for this reason
//	```json file="orders.json"       the block becomes this file in the folder
//
// A block of language console, sh, bash or shell that has no prompt needs a
// norun: readers copy such blocks, so either a test runs them or the reason why
// not is written down.
//
// No sentence of a document has more than 25 words, but for those of decision
// records, tables and blocks; a span of code is one word.
//
// A page for users that has a word of ours, as redrive, lease or letter, has the
// field's word for it in the sentence that uses ours first.
//
// A test that a document names in code marks, as worker.TestDrain,
// worker.TestOutcomes/panic, nixie.TestIDRoundTrip (the root package) or
// suite.Enqueue/AllOrNone (the suite for stores), has to exist.
package docs
