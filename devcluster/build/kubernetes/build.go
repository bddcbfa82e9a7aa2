//go:build tools

// Package kubernetes only names the programs that devcluster builds from this
// module, so that go.mod and go.sum keep what they need.
//
// It is never compiled: programs cannot be imported, and the build tag is for
// `go mod tidy`, which reads files regardless of their tags.
package kubernetes

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
