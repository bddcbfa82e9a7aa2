// Package gen generates the objects of a cluster: pods of 200 applications, custom resources of 50 owners, nodes,
// namespaces. They are variations of a few objects that were recorded from a real control plane (folder corpus, which
// "go run -C bench ./cmd/corpus" records again).
//
// An object is a function of the seed and its index, without state, so that a server can serve a million objects
// without storing them.
//
//   - An application is a recorded workload with another name, other images, values, resources and probes, and without
//     some of its optional parts: labels, annotations, variables, sidecars, probes, volumes. The managedFields are the
//     recorded ones, without the fields of these parts. A test of package fill verifies that a real API server stores
//     the same pods.
//   - Pods of one application share a few revisions and namespaces. They differ as in a cluster: in name, UID, node,
//     addresses, container ids, times, and crashes.
//   - Some values that vary in length in a cluster have a fixed length here (addresses, node names, resource
//     versions), so that an [Encoder] can patch encoded bytes instead of encoding a pod. This hardly affects
//     compression: the digits are as random.
package gen

// Version is part of the name of stored data; it changes when the generated data change.
const Version = 2
