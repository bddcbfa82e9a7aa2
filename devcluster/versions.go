package devcluster

import (
	"fmt"
	"runtime"
	"strings"
)

// The versions of the programs. Each equals the version in a go.mod below build/; a
// test compares them. They are constants so that a cached program is found without
// its source.
const (
	KubernetesVersion = "v1.36.3"
	EtcdVersion       = "v3.6.16"
	KwokVersion       = "v0.8.0"
)

// program is one binary that can be built.
type program struct {
	name    string // of the file, and in EnsureBinaries
	module  string // folder below build/
	pkg     string // import path of its main package
	version string
	ldflags string // in addition to those of all programs
	roughly int    // seconds on two cores with an empty build cache, in the order of programs
}

// programs, in building order: etcd first, because it is quick, then
// kube-apiserver, which compiles most packages of the rest.
var programs = []program{
	{"etcd", "etcd", "go.etcd.io/etcd/server/v3", EtcdVersion, "", 30},
	{"kube-apiserver", "kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver", KubernetesVersion, kubernetesStamp(), 210},
	{"kubectl", "kubernetes", "k8s.io/kubernetes/cmd/kubectl", KubernetesVersion, kubernetesStamp(), 25},
	{"kube-controller-manager", "kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager", KubernetesVersion, kubernetesStamp(), 60},
	{"kube-scheduler", "kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler", KubernetesVersion, kubernetesStamp(), 10},
	{"kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok", KwokVersion, "", 60},
}

// kubernetesStamp sets the version that Kubernetes' own build stamps; without it a
// program reports v0.0.0-master. A module does not contain its commit; "archive" is
// Kubernetes' word for a tree without git.
func kubernetesStamp() string {
	major, rest, _ := strings.Cut(strings.TrimPrefix(KubernetesVersion, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	var b strings.Builder
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, kv := range [][2]string{
			{"gitVersion", KubernetesVersion}, {"gitMajor", major}, {"gitMinor", minor},
			{"gitCommit", "unknown"}, {"gitTreeState", "archive"},
		} {
			fmt.Fprintf(&b, " -X %s.%s=%s", pkg, kv[0], kv[1])
		}
	}
	return b.String()
}

// setName names the folder in the cache, one for each combination of versions and
// platform, so that checkouts with different versions can share the cache.
func setName() string {
	return fmt.Sprintf("kubernetes-%s-etcd-%s-kwok-%s-%s-%s",
		KubernetesVersion, EtcdVersion, KwokVersion, runtime.GOOS, runtime.GOARCH)
}

// lookupProgram finds a program by its name.
func lookupProgram(name string) (program, error) {
	var known []string
	for _, p := range programs {
		if p.name == name {
			return p, nil
		}
		known = append(known, p.name)
	}
	return program{}, fmt.Errorf("find program %q: there are %s", name, strings.Join(known, ", "))
}
