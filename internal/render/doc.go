// Package render writes changes for people: one readable text for terminals, files and pipes. It is the only renderer of
// watch, log and show.
//
// It has no clock and no goroutine: the caller passes changes with the time, and calls Tick when Next says so. A line has
// a time, a sign, a name and a description:
//
//	~  changed                 ·  a line for several changes
//	+  created                 >  entered the selection
//	-  deleted                 <  left the selection
//	=  existed at the start    !  a notice or a gap
//
// Changes of state (the status, and what controllers write during a rollout) are folded until the object has not changed
// for a while. The kind decides how long: an unready pod or an unfinished rollout may stay without a line for ten seconds
// or more. While a workload is in transition, the changes of its ReplicaSets, Jobs and pods are part of its story, without
// lines of their own: at the end, one line says how many pods were created and deleted, and how long it took. Of the pods
// that fail for the same reason, the first has an indented line. A folded line says how many changes it covers, and Counts
// accounts for every change: nothing is hidden without being counted.
//
// A summary begins with the problem, in red; a warning is yellow, a recovery green. On a narrow terminal the hint and the
// count are dropped first, and the description is cut last.
//
// An event of the cluster is part of its object's pending line, with its number of occurrences and their duration. Without
// a pending line it is printed like kubectl get events.
//
// Everything from the cluster is made harmless for a terminal: control characters and marks that reorder text are escaped.
package render
