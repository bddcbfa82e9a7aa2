// Package samples makes objects as busy clusters have them, for tests and benchmarks: pods of many applications,
// ReplicaSets, ConfigMaps, Leases. Names, images, environments, probes, statuses and managedFields are random in what
// differs between real objects and equal in what does not, so that compression and sharing find what they find in a
// cluster, and no more. The same seed always makes the same objects.
//
// Only tests import it.
package samples
