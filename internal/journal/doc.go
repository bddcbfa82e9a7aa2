// Package journal stores the changes of a cluster, the last states of its objects, and the sinks' cursors in one SQLite
// file.
//
//   - Ordering: a change has a sequence number, its place in the journal. No number is assigned twice.
//   - What may be skipped: nothing. A change whose id the journal already has is not written again.
//   - Deletes: a deletion keeps the whole last object. An object recreated under its name is another object. Retention
//     removes whole changes, and never one that is needed to read a later one.
//   - Stored rows: a change is never rewritten, and its contents only by retention and purge, with one exception. What an
//     object was after its newest change is stored only once, as its state (table live). Before Append replaces that state
//     by one from which it could not be derived, or before Forget or Resume drops it, the object is copied into the newest
//     change's after; otherwise its content would be lost. Storing it with each change instead would store every state twice.
//   - Clusters: one journal can record several; see clusters.go. Rows, streams and absences of two clusters never meet.
//   - Durability: one transaction holds the changes, the new states and the version of their stream, so a restart
//     resumes exactly after the last recorded change. Once Append has returned, they survive a crash of the machine.
//     After a crash during Append, all of its batches are found, or none.
//   - Slow consumers: a Reader holds a read transaction for a few hundred rows at a time, so that a slow one neither
//     delays the writer nor keeps the log from being emptied.
//   - Sync: all methods of Journal and Reader may be called concurrently. Calls on one of them wait for each other;
//     readers and the writer do not.
//   - Ownership: the journal keeps no bytes passed to it; bytes that it returns belong to the caller.
//   - Damage: every page and every content has a checksum. A mismatch is a *DamagedError; the data is never returned.
//   - After close: every call returns ErrClosed.
//
// Times have millisecond precision. docs/journal.md describes the formats. Nothing older was released, so nothing is
// migrated.
package journal
