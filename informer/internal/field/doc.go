// Package field reads single fields of an object from its bytes, without decoding it, as an index by
// spec.nodeName needs.
//
// A Path is compiled from a Go type, whose struct tags give a field's protobuf number and JSON name, or, for
// unstructured objects, from its text alone. It reads the same values as from the decoded object:
//
//	Absent       A field of a Go type that is not a pointer, nor within one, has its zero value. Any other
//	             absent field has no value.
//	Lists        [*] yields the values of all elements, each distinct value once.
//	Values       Strings, bools and integers, as text. In unstructured objects, anything else has no value.
//	Unusual      If decoders have their own rules (duplicate fields, a wrong type, broken bytes), Read gives up:
//	             the caller decodes the object and calls Of.
//	Elsewhere    Bytes outside the path are skipped and may be broken.
//	Concurrency  Paths are safe for concurrent use.
package field
