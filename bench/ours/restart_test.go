package ours

import "testing"

func TestLists(t *testing.T) {
	for _, c := range []struct {
		request string
		want    int
	}{
		{"/api/v1/pods?limit=1", 0},
		{"/api/v1/pods?limit=500", 1},
		{"/api/v1/pods", 1},
		{"/api/v1/pods?watch=true&resourceVersion=7", 0},
		{"/api/v1/pods?watch=1&sendInitialEvents=true", 1},
		{"/api/v1/namespaces/shop/pods/web-0", 0},
		{"/api/v1/namespaces/kube-system", 0},
	} {
		if got := lists([]string{c.request}); got != c.want {
			t.Errorf("%s counts as %d lists", c.request, got)
		}
	}
}
