// Package gen generates the objects of a cluster, with the variety of a real cluster's objects:
// pods of 200 applications, custom resources of 50 owners, nodes, namespaces.
//
// An object is a function of the seed and its index, without state, so that a server can serve a
// million objects without storing them.
//
//   - The managedFields of a pod come from the API server's code. A test of package fill verifies
//     that a real API server stores the same pod after the requests of controllers, scheduler and
//     kubelets.
//   - Pods of one application share a spec, managedFields, and a few revisions and namespaces. They
//     differ as in a cluster: in name, UID, node, addresses, container ids, times, and crashes.
//   - Some values that vary in length in a cluster have a fixed length here (addresses, node names,
//     resource versions), so that an [Encoder] can patch encoded bytes instead of encoding a pod.
//     This hardly affects compression: the digits are as random.
package gen

// Version is part of the name of stored data; it changes when the generated data change.
const Version = 1
