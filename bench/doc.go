// Package bench measures Tattler's informers beside client-go's: the same server, the same run, in
// turns (A B A B), a process for each measurement, medians over the rounds.
//
//	make bench                                          everything; the table, and bench/out/latest.jsonl
//	go run -C bench ./cmd/bench -run typed -rounds 3    some of it
//	go run -C bench ./cmd/bench -quick                  everything, small: does it work?
//	go run -C bench ./cmd/bench -list                   what there is
//
// The first run fills a control plane with 20,000 pods and as many custom resources, which takes
// some five minutes on two cores; it is kept in the user's cache folder (tattler/bench, some 0.9 GB)
// and used again. All of it then takes hours, most of them for a million changes beside a
// dead sink: -run leaves that out. Nothing else should run meanwhile: a number beside which ±10%
// stands was disturbed.
//
//	gen      the data: pods of 200 applications, custom resources of 50 owners
//	fill     a real API server with such data in it
//	synth    an API server that makes them up, for a million pods and for a million events
//	harness  processes, deadlines, time, CPU, memory
//	peer     client-go as its users use it, and the bare download
//	ours     this repository
//	operator a program made with controller-runtime, with client-go's informers and with ours
//	controllers a controller, on informer/controller and on controller-runtime
//	recorder the journal and the daemon, beside nothing
//	sinks    a pump and each kind of sink, in batches and one by one
//	suite    scenarios, rows, aims, the table
//
// What the numbers are:
//
//   - CPU is what the process used (user and system, also the garbage collector's) from before the
//     client was made until it had nothing more to do after the sync.
//   - Heap is the live heap after a collection, without what was there before the client was made.
//   - RSS is the whole process's, program included; peak RSS is the most that it ever was.
//   - Time to sync counts from before the client was made; the download's, too, which is that of an
//     HTTP client that reads the same streaming list and throws it away.
//   - client-go has its default options and asks for protobuf where a type has it, which is not its
//     default but what its users should do. It is built as Go builds it by default: with the build
//     tag fieldsv1string it interns managed fields.
//
// What they leave out: a network (everything is on one machine, where download, decoding and server
// compete for its cores), compression of streaming lists (API servers have it from 1.37 on, and this
// one is 1.36), and clusters whose pods have more in common than these, or less.
package bench
