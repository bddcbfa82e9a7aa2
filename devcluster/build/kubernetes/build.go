//go:build tools

// Package kubernetes imports the programs that devcluster builds from this module,
// so that go.mod and go.sum keep their requirements.
//
// It is never compiled, because programs cannot be imported. `go mod tidy` reads
// it regardless of its build tag.
package kubernetes

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
