// Package upstream runs the test suites that client-go and controller-runtime have for their informers and caches,
// on the informers of this repository. The suites are not copied into it: a test finds the upstream module in the
// module cache, copies it below the user's cache, applies a few edits, each of which must match as often as it says,
// adds the files of testdata, and builds and runs the module's own tests. Nothing is downloaded: 'go mod download' in
// compat/ brings all that is needed.
package upstream
