// Package gen makes the objects of a cluster that does not exist, as unlike one another as those of
// a real one: pods of 200 applications, custom resources of 50 owners, nodes, namespaces.
//
// An object is a function of the seed and its index: no state, so that a server can make a million
// of them without holding one.
//
//   - A pod's managedFields come from the code with which API servers make them. The package fill
//     tests that a real API server, given what controllers, scheduler and kubelets would send,
//     stores the same pod.
//   - Pods of one application share what such pods share: a few revisions and namespaces, the same
//     spec, the same managedFields. What differs does so as it does in a cluster: name, UID, node,
//     addresses, container ids, times, whether a container crashed.
//   - Some of what varies in length in a cluster has one length here (addresses, node names,
//     resource versions), so that an [Encoder] can fill in a pod's bytes instead of encoding it.
//     Compression hardly notices: the digits are as random.
package gen

// Version is part of the name of what is kept of generated data; it changes with the data.
const Version = 1
