// Package workflow reads workflow files: lists of work and of steps in YAML, in the language of
// MapReduce workflows. It runs nothing. [Parse] makes a [File] of a text, whose steps package
// runner runs as it runs those of flags.
//
// [Fields] is the one table of the language: the keys that Parse knows, those that it refuses, and
// why. A key that is not in it is an error.
package workflow
