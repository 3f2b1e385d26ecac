// Package command runs a child process with limits and makes an error of its outcome that package
// policy can judge.
//
// [Run] starts a program, never a shell, in a process group of its own. It feeds standard input,
// keeps the end of each output, and kills the whole group at the timeout or when the leader has
// ended. A [Guard] is a second process that kills the group when this process dies, even by kill
// -9. [Result.Judge] makes an error of the result, with or without a [Verdict] that the command
// wrote. [Template] and [Environment] pass an item to the command, and no program parses its text
// again.
//
// Linux is complete. macOS and the BSDs have no start time that proves the owner of a group number.
// There a restart ends nothing, and the supervisor of a Guard acts at once or never. On other
// systems Run and StartGuard return unavailable.
package command
