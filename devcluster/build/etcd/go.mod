// etcd, built by devcluster. A module of its own, because its requirements
// conflict with those of Kubernetes and kwok.
module github.com/tattler-dev/tattler/devcluster/build/etcd

go 1.26.0

require go.etcd.io/etcd/server/v3 v3.6.16
