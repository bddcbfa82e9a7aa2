// Package work has the common parts of workqueue and workqueue-by-hand: their flags, and their work on a ConfigMap.
package work

import (
	"errors"
	"flag"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/tattler-dev/tattler/examples/internal/program"
)

// Flags are the flags of both programs.
type Flags struct {
	Namespace string
	Workers   int
}

// NewFlags adds them to the command line.
func NewFlags() *Flags {
	f := &Flags{}
	flag.StringVar(&f.Namespace, "namespace", "default", "`namespace` whose ConfigMaps are handled")
	flag.IntVar(&f.Workers, "workers", 2, "how many are handled at once")
	return f
}

// Valid returns an error if a flag is invalid.
func (f *Flags) Valid() error {
	if f.Namespace == "" || f.Workers < 1 {
		return program.Usage("give a --namespace, and --workers of 1 or more")
	}
	return nil
}

// Handle does something with a ConfigMap: it prints its size. It fails for one with the annotation fail: "yes".
func Handle(m *corev1.ConfigMap) error {
	if m.Annotations["fail"] == "yes" {
		return errors.New("its annotation wants it to fail")
	}
	fmt.Printf("handled %s/%s: %d keys\n", m.Namespace, m.Name, len(m.Data))
	return nil
}

// Gone does something about a ConfigMap that was deleted.
func Gone(key string) { fmt.Printf("gone %s\n", key) }

// Failed prints that a key has failed so many times in a row.
func Failed(key string, times int, err error) {
	fmt.Printf("failed %s, %d in a row: %v\n", key, times, err)
}

// Dropped prints that a key is not tried again.
func Dropped(key string) { fmt.Printf("dropped %s\n", key) }

// Synced prints how many ConfigMaps there are, once that is known.
func (f *Flags) Synced(n int) {
	fmt.Printf("synced: %d ConfigMaps in the namespace %s\n", n, f.Namespace)
	if n == 0 { // the API server lists a namespace that does not exist as an empty one
		fmt.Println("the namespace has no ConfigMaps: if you expected some, check --namespace with kubectl get namespaces")
	}
}
