// Package story follows what happens to objects: a rollout, a pod that starts, a Job's run, a failure, a deletion.
//
// A Story is an episode of one object. Read takes out of a change what stories need, where its objects are at hand; an
// Engine follows the changes, and returns what each proves: a story that begins, a state that it reached, its end, or that it
// is part of another one.
//
//	begins with                                        kind         ends
//	a new object                                       start        when it is ready, or has ended
//	a new Job                                          run          when it is complete or has failed
//	another pod template                               rollout      when all pods have it and are ready
//	another number of pods                             scale        when there are so many
//	too few ready pods, although nobody asked          disruption   when there are enough
//	something that is wrong                            incident     when nothing is
//	the request to delete it                           deletion     when it is gone
//	a node that takes no more pods                     drain        when it takes some again
//	a Kubernetes Event that warns of an object         report       when it happened last
//	any other change of its state                      status       a minute after the last one
//
// An object has at most one open story. A new template, another number of pods and a deletion end the one before; anything
// else becomes a state of it.
//
// Nothing depends on a clock, nor on the order in which the streams of different kinds arrive: an object's stories follow
// from its own changes, their times are those that objects record, and a story is part of another one if that belongs to an
// object above it, and its time says so. An Engine can therefore be stopped and continued between any two changes, and
// several recorders of one cluster agree, ids included.
//
// A recovery may be short: a container that crashed runs again, and crashes once more. Within a minute, by the times in the
// object, the story is open again. Whether a story that ended a moment ago is over is for the reader to say.
package story
