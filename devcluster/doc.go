// Package devcluster runs a real Kubernetes control plane on this machine,
// from programs that it builds itself from Go modules: etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler, and kwok, which plays the kubelets.
//
// Tests call [Start]; a person runs the command cmd/devcluster (make cluster),
// which calls [Up] and [Down]. No container runtime and no download but Go's
// own module proxy is needed; the first build takes minutes, see
// [EnsureBinaries].
//
// Everything listens on 127.0.0.1 only. The API server requires TLS, and
// authenticates, authorizes and admits as a real one does (RBAC, Node, the
// default admission plugins). etcd speaks plain HTTP without authentication to
// any process on this machine: store nothing secret in it.
//
// No container ever runs: kwok only writes the statuses that kubelets would.
//
// It runs on Linux and macOS. On macOS, a killed test may leave processes.
package devcluster
