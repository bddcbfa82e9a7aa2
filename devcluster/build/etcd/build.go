//go:build tools

// Package etcd only names the program that devcluster builds from this module,
// so that go.mod and go.sum keep what it needs.
//
// It is never compiled: programs cannot be imported, and the build tag is for
// `go mod tidy`, which reads files regardless of their tags.
package etcd

import _ "go.etcd.io/etcd/server/v3"
