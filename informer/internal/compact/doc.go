// Package compact holds objects at rest: packed, immutable bytes.
//
// Objects of one application differ in little, so an object is stored as its difference from a
// sample of its kind of object: a pod takes a twentieth of its bytes. The sample is itself stored as
// a difference, from a dictionary that all objects of the source share, so that a sample costs
// little more than the object that it was taken from, and pays for itself with the next one.
//
//   - Which sample may suit an object is told by its fingerprint; whether it does, by the result.
//   - A sample lives as long as a Version needs it: a Router holds its samples weakly.
//   - Objects above 64 KiB, and those that no sample suits, are stored in S2 or against the shared
//     dictionary alone.
//   - Packed bytes carry no checksum. They go into checkpoints, which have their own; the format is
//     described at delta and at Dict.Bytes.
package compact
