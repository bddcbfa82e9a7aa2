// Package compact packs objects into immutable bytes.
//
// Objects of one application differ little, so an object is stored as its delta (internal/delta) from a sample: a pod takes
// a twentieth of its bytes. The sample is itself stored as a delta, from a dictionary shared by all objects of the source.
// So a sample costs little more than the object that it was made from, and pays with the next one.
//
//   - The fingerprint of an object suggests samples; the size of the delta decides.
//   - A sample lives as long as a Version needs it: a Router holds samples weakly.
//   - Objects above 64 KiB, and those that no sample suits, are stored in S2 or as a delta from the shared dictionary.
//   - Packed bytes have no checksum. Checkpoints, which store them, have their own. The format is described in
//     internal/delta and at Dict.Bytes.
package compact
