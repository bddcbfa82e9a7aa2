// Package render writes changes for people: one readable text for terminals, files and pipes.
//
// It is the one renderer of watch, log and show. It keeps no clock and no goroutine: the caller hands
// over changes with the time, and calls Tick when Next says so. A line is a time, a sign, a name and
// what happened:
//
//   - created                 >  entered the selection
//   - deleted                 <  left the selection
//     ~  changed                 ·  a line that stands for several changes
//     =  there at the start      !  a notice or a gap
//
// Changes of state (the status, and what controllers write during a rollout) are folded until the object is calm. While
// a workload is on its way to another state, what its ReplicaSets, Jobs and pods do is part of its story, and has no
// lines of its own: one line says at the end how many pods came and went, and how long it took. Of the pods that fail
// for the same reason, the first has a line, which is indented. A folded line says for how many changes it stands:
// Counts accounts for every change that was handed over.
//
// A summary begins with what is wrong, in red; a warning is yellow, a recovery green. On a narrow terminal the hint
// and the count go first, and what happened is cut last.
//
// An event of the cluster about an object that has a line to come is part of that line, with how often it happened and
// in how long; others have a line as of kubectl.
//
// Whatever the cluster says is made harmless for a terminal: control characters and marks that
// reorder text are written as escapes.
package render
