// Command pod-by-ip finds the pods, services and nodes that have an IP address, over HTTP:
//
//	curl localhost:8080/10.0.0.7
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/examples/internal/program"
	"github.com/tattler-dev/tattler/informer"
)

func main() {
	addr := flag.String("listen", "127.0.0.1:8080", "`address` to serve HTTP at")
	program.Main(func(ctx context.Context, cfg *rest.Config) error { return run(ctx, cfg, *addr) })
}

func run(ctx context.Context, cfg *rest.Config, addr string) error {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("%w: choose another address with --listen", err)
	}
	defer listener.Close()
	cluster, err := informer.NewCluster(cfg, informer.Options{})
	if err != nil {
		return err
	}
	byIP, err := open(cluster)
	if err != nil {
		return err
	}
	return cluster.RunWhile(ctx, func(ctx context.Context) error {
		if err := cluster.Wait(ctx); err != nil {
			return err
		}
		slog.Info("synced, and serving", "address", listener.Addr().String())
		return serve(ctx, listener, byIP)
	})
}

// lookup returns the objects that have a value, ready for JSON. Any index of any kind can be one.
type lookup func(value string) ([]any, error)

// indexed makes a lookup by the values of each object; brief returns its shown form.
func indexed[T informer.Object](cluster *informer.Cluster, values func(T) []string, brief func(T) any) (lookup, error) {
	view, err := informer.For[T](cluster)
	if err != nil {
		return nil, err
	}
	index := informer.AddIndex(view, "ip", values)
	return func(value string) ([]any, error) {
		found := []any{}
		for obj, err := range index.Get(value) {
			if err != nil {
				return nil, err
			}
			found = append(found, brief(obj))
		}
		return found, nil
	}, nil
}

// found is the shown form of an object.
type found struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Node      string `json:"node,omitempty"`
	Phase     string `json:"phase,omitempty"`
}

// open makes a lookup for each kind, from one cluster.
func open(cluster *informer.Cluster) (map[string]lookup, error) {
	pods, err1 := indexed(cluster, podIPs, func(p *corev1.Pod) any {
		return found{p.Namespace, p.Name, p.Spec.NodeName, string(p.Status.Phase)}
	})
	services, err2 := indexed(cluster, serviceIPs, func(s *corev1.Service) any { return found{Namespace: s.Namespace, Name: s.Name} })
	nodes, err3 := indexed(cluster, nodeIPs, func(n *corev1.Node) any { return found{Name: n.Name} })
	return map[string]lookup{"pods": pods, "services": services, "nodes": nodes}, errors.Join(err1, err2, err3)
}

// podIPs are those of a pod; pods on the host's network share those of their node.
func podIPs(p *corev1.Pod) []string {
	var ips []string
	for _, ip := range p.Status.PodIPs {
		ips = append(ips, ip.IP)
	}
	return ips
}

func serviceIPs(s *corev1.Service) []string {
	ips := append(append([]string{}, s.Spec.ClusterIPs...), s.Spec.ExternalIPs...)
	for _, in := range s.Status.LoadBalancer.Ingress {
		ips = append(ips, in.IP)
	}
	return ips
}

func nodeIPs(n *corev1.Node) []string {
	var ips []string
	for _, a := range n.Status.Addresses {
		ips = append(ips, a.Address)
	}
	return ips
}

func serve(ctx context.Context, listener net.Listener, byIP map[string]lookup) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{ip}", func(w http.ResponseWriter, r *http.Request) {
		ip, err := netip.ParseAddr(r.PathValue("ip"))
		if err != nil {
			http.Error(w, fmt.Sprintf("%q is not an IP address; ask for one, such as /10.0.0.7", r.PathValue("ip")), http.StatusBadRequest)
			return
		}
		answer := map[string][]any{}
		for kind, get := range byIP {
			if answer[kind], err = get(ip.Unmap().String()); err != nil {
				http.Error(w, fmt.Sprintf("look up %s: %v", kind, err), http.StatusInternalServerError)
				return
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	})
	return program.Serve(ctx, listener, &http.Server{Handler: mux})
}
