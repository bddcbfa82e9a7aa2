package guide

import (
	"fmt"
	"io"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func testsClientGo(t *testing.T, out io.Writer) {
	t.Helper()
	//guide:begin tests-clientgo
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(deployment("web"), deployment("db"))
		// Somebody deletes web after the informer's list, and before its watch.
		client.PrependWatchReactor("deployments", func(a clienttesting.Action) (bool, watch.Interface, error) {
			return false, nil, client.Tracker().Delete(a.GetResource(), "shop", "web")
		})
		factory := informers.NewSharedInformerFactory(client, 0)
		lister := factory.Apps().V1().Deployments().Lister()
		factory.StartWithContext(t.Context())
		synctest.Wait()
		_, err := lister.Deployments("shop").Get("web")
		fmt.Fprintln(out, "get:", err)

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

func deployment(name string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
}
