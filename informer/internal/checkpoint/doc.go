// Package checkpoint keeps the state of streams on disk, so that a restart resumes them where they
// stood: a loader, and a consumer of what a store tells.
//
// A directory belongs to one process. Each stream has a file, which docs/checkpoint.md describes: it
// is appended to in transactions, and written anew when most of it is garbage.
//
//	Ordering         A file never claims a version that its objects do not have all of: they are
//	                 written before the commit that names it.
//	What may be      A crash loses the last second. What is loaded is then an earlier state of the
//	skipped          stream, from which a watch goes on, or learns by a 410 that it cannot.
//	Deletes          Are written as such; what was deleted between two processes is found when the
//	                 second one was told everything that is there.
//	Slow consumers   A slow disk makes the queue fold, which is bounded; the stream never waits.
//	Sync             Live: the objects are the stream's state at the version. Listing: a list was
//	                 under way, or the server's history was replaced: nothing but a list may follow.
//	Failure          What fails to be written is removed, and tried again from the whole state.
//	                 There is a current file or none. What cannot be read is an error, never a state.
//	Ownership        What is loaded is the caller's. Nothing is hidden: what must not be on disk must
//	                 not be in the stream.
//	After close      A file stays. Those of streams that nobody opens any more are nobody's to remove.
package checkpoint
