//go:build tools

// Package etcd imports the program that devcluster builds from this module, so
// that go.mod and go.sum keep its requirements.
//
// It is never compiled, because programs cannot be imported. `go mod tidy` reads
// it regardless of its build tag.
package etcd

import _ "go.etcd.io/etcd/server/v3"
