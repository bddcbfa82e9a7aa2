//go:build tools

// Package kwok only names the program that devcluster builds from this module,
// so that go.mod and go.sum keep what it needs.
//
// It is never compiled: programs cannot be imported, and the build tag is for
// `go mod tidy`, which reads files regardless of their tags.
package kwok

import _ "sigs.k8s.io/kwok/cmd/kwok"
