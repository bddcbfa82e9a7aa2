// Package feed hands on batches of bytes to programs that keep them. It is the daemon's side of the engine, not
// for controllers: those use package informer.
//
// A Feed hands on the changes of one source, stream by stream and in order, as the objects' bytes. A program
// that writes down every Batch can have the source opened anew with what it has kept (Options.Restore): the
// feed then goes on where it was, without a list, while the server has the history. Where it has not, or where
// the consumer exceeds its budget, a Gap says so and net changes follow.
package feed
