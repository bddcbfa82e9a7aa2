// Package field reads single fields of an object from its bytes, without decoding it: what an index by spec.nodeName needs.
//
// A Path is compiled from a Go type, whose struct tags say where a field is in protobuf and what it is called in JSON, or,
// for unstructured objects, from its text alone. What it reads is what the decoded object has:
//
//	Absent       A field of a Go type that is no pointer, nor in one, has its zero value. Any other has no value.
//	Lists        [*] gives the values of all elements. The same value is given once.
//	Values       Strings, bools and integers, as text. Of an unstructured object, anything else is no value.
//	Unusual      Where the decoders have rules of their own (what comes twice, a wrong type, broken bytes), Read gives up:
//	             the caller decodes the object, and asks Of.
//	Elsewhere    What is not on the way to the field is passed over, and may be broken.
//	Concurrency  Paths are safe for concurrent use.
package field
