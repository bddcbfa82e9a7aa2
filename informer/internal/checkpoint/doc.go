// Package checkpoint keeps the state of streams on disk, so that a restart resumes them from their last
// versions. It has a loader, and a writer that consumes a store's batches.
//
// A directory belongs to one process. Each stream has a file, described in docs/checkpoint.md: transactions are
// appended to it, and it is rewritten when most of it is garbage.
//
//	Ordering         A file never claims a version unless it has all objects of that version: they are
//	                 written before the commit that names it.
//	What may be      A crash loses the last second. The loaded state is then an earlier one of the
//	skipped          stream, from which a watch resumes, or fails with 410.
//	Deletes          Are written. Objects that were deleted between two processes are removed once
//	                 the second process has received the whole state.
//	Slow consumers   A slow disk makes the queue fold, which is bounded; the stream never waits.
//	Sync             Live: the objects are the stream's state at the version. Listing: a list was
//	                 under way, or the server's history was replaced: only a list may follow.
//	Failure          After a failed write the file is removed and written again from the whole state:
//	                 there is a current file or none. An unreadable file is an error, never a state.
//	Ownership        The loaded state is the caller's. Nothing is redacted: a stream must not contain
//	                 what must not be on disk.
//	After close      A file stays. The files of streams that are never opened again are not removed.
package checkpoint
