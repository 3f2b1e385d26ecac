// Package command runs a child process with limits and turns how it ended into
// an error that package policy can judge.
//
// [Run] starts a program, never a shell, in a process group of its own, feeds
// it, keeps the end of what it prints and ends the whole group when its time is
// up or when its leader has ended. A [Guard] is a second process that does the
// same when this one dies without a word. [Result.Judge] makes an error of the
// result, with or without a [Verdict] that the command wrote itself. [Template]
// and [Environment] carry an item to the command without any text of it being
// parsed again.
//
// Linux is complete. On macOS and the BSDs there is no start time to prove whose
// group a number is, so a restart ends nothing there and the supervisor of a
// Guard acts at once or never. On other systems Run and StartGuard answer
// unavailable.
package command
