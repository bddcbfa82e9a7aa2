// Package journal keeps what changed in a cluster, the last states, and how far the sinks are, in one
// SQLite file.
//
//   - Ordering: a change has a sequence number, its place in the journal, which is never given twice.
//   - What may be skipped: nothing. A change whose id the journal has already is not written again.
//   - Deletes: a deletion keeps the last object whole. An object that was recreated under its name is
//     another object. Retention removes whole changes and never one that a later one is read with.
//   - Durability: what Append has returned for survives a crash of the machine, whole; what it has
//     not, may be found whole or not at all.
//   - Slow consumers: a Reader holds a read transaction for a few hundred rows at a time, so that one
//     that is read slowly keeps neither the writer nor the file back.
//   - Sync: Append, Retain and all else of a Journal may be called from several goroutines; calls wait
//     for one another. So with a Reader. The two do not wait for each other.
//   - Ownership: bytes that are handed in are not kept; bytes that are handed out are the caller's.
//   - Damage: every page and every content has a checksum. What does not match is a *DamagedError and
//     is never handed out.
//   - After close: every call returns ErrClosed.
//
// Times are kept in milliseconds. The format is described in docs/journal.md.
package journal
