// kwok, built by devcluster. A module of its own, because its requirements
// conflict with those of Kubernetes and etcd.
module github.com/tattler-dev/tattler/devcluster/build/kwok

go 1.26.0

require sigs.k8s.io/kwok v0.8.0
