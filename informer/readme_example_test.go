package informer_test

import (
	"context"
	"fmt"
	"log"
	"os/signal"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tattler-dev/tattler/informer"
)

// Example is the program of the README.
func Example() { //nolint:testableexamples // it needs a cluster
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()

	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		log.Fatal(err)
	}
	cl, err := informer.NewCluster(cfg, informer.Options{Checkpoint: "state/"})
	if err != nil {
		log.Fatal(err)
	}
	pods, err := informer.For[*corev1.Pod](cl, informer.InNamespaces("shop"))
	if err != nil {
		log.Fatal(err)
	}
	byIP := informer.AddIndex(pods, "ip", func(p *corev1.Pod) []string {
		var ips []string
		for _, ip := range p.Status.PodIPs {
			ips = append(ips, ip.IP)
		}
		return ips
	})

	ended := make(chan error, 1)
	go func() { ended <- cl.Run(ctx) }()
	if err := cl.Wait(ctx); err != nil {
		log.Fatal(err) // sync pods in namespace shop: forbidden: …
	}

	if pod, err := pods.Get("shop", "web-0"); err == nil {
		fmt.Println(pod.Name, "runs on", pod.Spec.NodeName)
	}
	for p, err := range byIP.Get("10.0.0.7") {
		if err != nil {
			log.Print(err) // it exists, and cannot be decoded
			continue
		}
		fmt.Println("10.0.0.7 is", p.Name)
	}
	for c, err := range pods.Changes(ctx, "printer") {
		if err != nil {
			break // ctx has ended
		}
		pod, err := c.New() // nil for a deletion, which has only c.Old()
		if err != nil {
			log.Print(err)
			continue
		}
		fmt.Println(c.Op, c.Key.Name, pod != nil && pod.Status.Phase == corev1.PodRunning)
	}
	if err := <-ended; err != nil {
		log.Fatal(err)
	}
}
