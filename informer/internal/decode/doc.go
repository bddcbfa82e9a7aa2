// Package decode makes Go objects of protobuf faster than the generated code does, and maps of JSON faster than util/json
// does. It lets objects share the parts in which they are equal: most of a pod is the same in all pods of its ReplicaSet.
//
// A Plan is made from the struct tags of a type of k8s.io/api. It decodes what the API server writes: each field once, in
// the order of the numbers. Anything else (an unknown field, another order, a field that comes twice, malformed bytes) it
// hands to the type's generated Unmarshal rather than imitate that: see Plan.Decode.
//
// JSON makes the map[string]any of an unstructured object. It too decodes what servers write, and leaves the rest to
// util/json, so results and errors are the same.
//
// A Table holds the parts that objects share. An object that was decoded with a table must not be changed by anybody;
// without one, nothing is shared and the object is the caller's.
//
//	Shared         What pointers to messages point to, repeated fields as a whole, maps, bytes, strings. In JSON: objects
//	               below the root, arrays, strings. Keys are one string even without a table, as nobody can change them.
//	When           From the second time that the same bytes are seen. What is seen once costs 8 bytes, in a table of fixed size.
//	Equality       By a 128-bit hash of the bytes, with random seeds. The bytes are not kept.
//	After failure  Parts enter the table once their whole object has been decoded.
//	Size           Bounded; see NewTable. What nobody asks for is dropped, and lives on in the objects that have it.
//	Concurrency    Plans and tables are safe for concurrent use.
//
// What it buys, beside the generated code and beside the same without unsafe:
//
//	go test ./informer/internal/decode -run '^$' -bench . -benchtime 3x
package decode
