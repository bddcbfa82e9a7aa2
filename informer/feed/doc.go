// Package feed delivers batches of bytes to programs that persist them. It is the daemon's side of the engine;
// controllers use package informer.
//
// A Feed delivers the changes of one source, stream by stream and in order, as the objects' bytes. A program
// that persists every Batch can reopen the source with its state (Options.Restore): the feed then resumes
// without a list, as long as the server has the history. If it does not, or if the consumer exceeds its budget,
// a Gap marks the place and net changes follow.
package feed
