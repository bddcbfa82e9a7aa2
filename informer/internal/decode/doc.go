// Package decode makes Go objects from protobuf faster than the generated code, and maps from JSON faster than util/json.
// Objects can share the parts in which they are equal: most of a pod is the same in all pods of its ReplicaSet.
//
// A Plan is made from the struct tags of a type of k8s.io/api, and sets fields by reflection. It decodes what the API server
// writes: each field once, in ascending order, with unknown fields skipped. For anything else (another order, a field that
// comes twice, malformed bytes) the caller asks the type's generated Unmarshal: see Plan.Decode.
//
// JSON makes the map[string]any of an unstructured object. It decodes what servers write, and leaves the rest to util/json,
// so results and errors are the same.
//
// Table.Share does the same for objects of any Go type that a JSON decoder has made, after decoding.
//
// A Table holds the parts that objects share. Objects decoded with a table are read-only. Without one, nothing
// is shared and the object is the caller's.
//
//	Shared         Messages behind pointers, repeated fields as a whole, maps, bytes, strings. In JSON: objects below the
//	               root, arrays, strings. Keys in JSON are shared even without a table.
//	When           From the second time that the same bytes are seen. The first time costs 8 bytes, in a filter of fixed
//	               size. Inside a part that enters the table, nothing else does.
//	Equality       By a 128-bit hash of the bytes, with random seeds. The bytes are not kept.
//	After failure  Parts enter the table once their whole object has been decoded.
//	Size           Bounded; see NewTable. Unused parts are dropped, and live on in the objects that have them.
//	Concurrency    Plans and tables are safe for concurrent use.
//
// The benchmarks compare it with the generated code:
//
//	go test ./informer/internal/decode -run '^$' -bench BenchmarkRatios -benchtime 5x
package decode
