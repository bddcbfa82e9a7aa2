// Package samples makes objects like those of busy clusters, for tests and benchmarks: pods of many
// applications, ReplicaSets, ConfigMaps, Leases. Names, images, environments, probes, statuses and
// managedFields are random where real objects differ and equal where they do not, so that compression and
// sharing gain as much as in a cluster. The same seed always makes the same objects.
//
// Only tests import it.
package samples
