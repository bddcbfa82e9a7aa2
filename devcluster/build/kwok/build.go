//go:build tools

// Package kwok imports the program that devcluster builds from this module, so
// that go.mod and go.sum keep its requirements.
//
// It is never compiled, because programs cannot be imported. `go mod tidy` reads
// it regardless of its build tag.
package kwok

import _ "sigs.k8s.io/kwok/cmd/kwok"
