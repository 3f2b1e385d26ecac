// Package faultdisk is a disk for tests of SQLite databases: it remembers
// every change that reaches the file system, shows what a power loss at any
// moment could have left behind, and fails calls on request.
//
// A [Disk] is a directory and a SQLite VFS of its own, written in Go and
// registered under a unique name. It wraps the default VFS of the operating
// system and works with every driver built on modernc.org/sqlite/lib. Open a
// database through it with the URI that [Disk.URI] returns; everything else
// about the program under test stays as in production, WAL mode, memory
// mapping and several connections included.
//
// # Power loss
//
// The disk numbers every durable change: a file made, bytes written, a file
// cut, a file or directory synced, a file deleted. [Disk.CrashAt] builds the
// files as they could be after the power went just after change n, and
// [EachCrash] walks the moments and the [Mode]s. [Disk.Mark] notes in the same
// order what the program has promised, so that a check can tell what must have
// survived ([Crash.Acked]).
//
// The model, per file: an image that is synced and the changes since. A
// successful sync of a file moves its changes into the image, and synced bytes
// survive everything. Unsynced changes live in pages that are written back
// sector by sector, in any order, each sector with the content it had at some
// moment since the sync; sectors are 512 bytes or 4 KiB. The length of a file
// is kept separately from its bytes: it may be older than they are, or newer, and
// then the gap holds zeros or stale bytes. A cut that did not reach the disk
// keeps later bytes behind it away as well.
//
// Names are separate from files: a file made or deleted keeps its old state in
// the directory until the directory is synced, and changes of names in one
// directory become durable in order. A directory is synced where SQLite does
// it on Unix (the first sync of a journal or a log through each handle that may
// make it, and a delete that asks for it) and where the program says that it did so
// itself ([Disk.SyncDir]). Syncing a file does not make its name durable. That
// follows what POSIX promises; common Linux file systems do more.
//
// A sync that fails makes nothing durable, and the pages it should have
// written count as clean from then on, as on Linux: a later sync that succeeds
// writes them only if they were written to again in between. A program that
// repeats a failed sync and believes the second answer loses data here.
//
// # Faults
//
// [Disk.FailAt] fails the n-th matching call, once or from then on, with an
// error code of choice; writes may be cut short first. [EachFault] repeats a
// scenario with the fault at call 1, 2, 3 … until the scenario no longer
// reaches it. [Catalog] lists faults worth trying.
//
// # What is not modelled
//
//   - Writes that damage bytes next to them. SQLite is told that the disk
//     promises powersafe overwrite, its default, and nothing else: neither
//     atomic sectors nor atomic batches.
//   - Disks that lose bytes after a successful sync, bit rot, misdirected
//     writes, stale reads.
//   - Files that do not go through the VFS: lock files, payload files, and the
//     -shm file, which SQLite rebuilds. Temporary files pass through and are
//     neither traced nor failed.
//   - Hints about size and chunks, which the disk takes and ignores; the VFS
//     below it never changes a file unseen.
//   - Other processes. The order of changes is the order in this process.
//   - The speed of a disk: nothing is really synced.
//
// # Concurrency and limits
//
// A Disk may be used by any number of connections and goroutines at once;
// changes are made one at a time. Tests may use several disks in parallel.
// Connections must be closed before the test that owns the disk ends. The
// trace holds at most [TraceLimit] bytes.
package faultdisk
