// Package devcluster runs a real Kubernetes control plane on this machine,
// from programs that it builds itself from Go modules: etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler, and kwok, which plays the kubelets.
//
// Tests call [Start]; a person runs the command cmd/devcluster (make cluster),
// which calls [Up] and [Down]. No container runtime and no download but Go's
// own module proxy is needed; the first build takes minutes, see
// [EnsureBinaries].
//
// Everything listens on 127.0.0.1 only. The API server asks for TLS and
// authenticates and authorizes as a real one does (RBAC, Node, the default
// admission plugins); etcd, behind it, speaks plain HTTP without
// authentication to whoever is on this machine. Put nothing into it that
// matters.
//
// No container ever runs: kwok only writes the statuses that kubelets would.
//
// It works on Linux and, without the promise that a killed test leaves no
// process behind, on macOS.
package devcluster
