// Package bench measures Tattler's informers beside client-go's: the same server, the same run,
// alternately (A B A B), one process for each measurement, medians over the rounds.
//
//	make bench                                          everything; the table, and bench/out/latest.jsonl
//	go run -C bench ./cmd/bench -run typed -rounds 3    some of it
//	go run -C bench ./cmd/bench -quick                  everything, small, to check that it works
//	go run -C bench ./cmd/bench -list                   the names of the scenarios
//	go run -C bench ./cmd/corpus                        records the objects again that the data vary
//
// The first run fills a control plane with 20,000 pods and as many custom resources, which takes
// about five minutes on two cores. It is kept in the user's cache folder (tattler/bench, about 0.9 GB)
// and used again. A full run takes hours, most of them for a million changes beside a dead sink;
// -run can leave that out. Nothing else should run meanwhile: a spread of ±10% means that the
// measurement was disturbed.
//
//	gen      the data: pods of 200 applications, custom resources of 50 owners, varied from recorded objects
//	fill     a real API server with such data
//	synth    an API server that generates them on request, for a million pods and a million events
//	harness  processes, deadlines, time, CPU, memory
//	peer     client-go as its users use it, and the bare download
//	ours     this repository
//	operator a controller-runtime program, with client-go's informers and with ours
//	controllers a controller, on informer/controller and on controller-runtime
//	recorder the journal and the daemon, without a peer
//	stages   the way of an update through the recorder, stage by stage, also in instructions
//	sinks    a pump and each kind of sink, in batches and one by one
//	suite    scenarios, rows, aims, the table
//
// The numbers:
//
//   - CPU is the process's time (user and system, including the garbage collector) from before the
//     client is created until the process is idle after the sync.
//   - Heap is the live heap after a collection, minus the live heap before the client was created.
//   - RSS is the resident memory of the whole process, including the program; peak RSS is its maximum.
//   - Instructions are counted by "perf stat" where the processor's counters are accessible (virtual machines often lack
//     them), else by callgrind if valgrind is installed. Without either, the rows say that they were not counted.
//   - Time to sync starts before the client is created. The peer of the download is an HTTP client
//     that reads the same streaming list and discards it.
//   - client-go has its default options, but requests protobuf where a type has it, as its users
//     should. It is built without tags; with the tag fieldsv1string it would intern managed fields.
//
// The benchmark leaves out a network (everything is on one machine, where download, decoding and server
// compete for the cores), compression of streaming lists (API servers have it since 1.37; this one is
// 1.36), and clusters whose pods have more in common than these, or less.
package bench
