// Package upstream runs other projects' tests on the informers of this repository: the suites of client-go's informers
// and of controller-runtime's cache, and the tests of cert-manager's controllers. The suites are not part of this
// repository. A test finds the upstream module in the module cache, copies it below the user's cache, applies a few
// edits, each of which must match a fixed number of times, adds the files of testdata, and builds and runs the module's
// tests. The tests download nothing: 'go mod download' in compat/ fetches every requirement.
package upstream
