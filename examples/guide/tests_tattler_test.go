package guide

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/informertest"
)

func testsTattler(t *testing.T, out io.Writer) {
	t.Helper()
	//guide:begin tests-tattler
	synctest.Test(t, func(t *testing.T) {
		server := informertest.NewServer()
		resource := appsv1.SchemeGroupVersion.WithResource("deployments")
		server.Serve(resource, "Deployment")
		server.PutObject(resource, deployment("web"))
		server.PutObject(resource, deployment("db"))
		// Somebody deletes web after the informer's list, and before its watch.
		var once sync.Once
		server.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
			if r.URL.Query().Has("watch") {
				once.Do(func() { server.Delete(resource, "shop", "web") })
			}
			return false
		})
		cluster, err := informer.NewCluster(server.Config(), informer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		paged := func(o *informer.ViewOptions) { o.Paged = true } // a streaming list is list and watch in one
		deployments, err := informer.For[*appsv1.Deployment](cluster, paged)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if err := cluster.Run(t.Context()); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		_, err = deployments.Get("shop", "web")
		fmt.Fprintln(out, "get:", err)

		client, err := kubernetes.NewForConfig(server.Config())
		if err != nil {
			t.Fatal(err)
		}
		api := client.AppsV1().Deployments("shop")
		db, err := api.Get(t.Context(), "db", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, tier := range []string{"back", "front"} { // the second time, db is old
			db.Labels = map[string]string{"tier": tier}
			_, err := api.Update(t.Context(), db, metav1.UpdateOptions{})
			fmt.Fprintln(out, "update:", err)
		}
	})
	//guide:end
}
