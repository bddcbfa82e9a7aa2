package clientgo

import (
	"fmt"
	"net/http"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/tattler-dev/tattler/informer/informertest"
)

// TestWhatIsKeptIsPackedAgain: encoding these objects would change them, as their type leaves empty lists out. They were
// packed as the server sent them; once nobody reads them any more, they are again.
func TestWhatIsKeptIsPackedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := informertest.NewServer()
		server.Serve(widgets, "Widget")
		put := func(i, size int) {
			server.Put(widgets, "shop", fmt.Sprint("p", i), map[string]any{"spec": map[string]any{"size": size, "tags": []any{}}})
		}
		const n = 10
		for i := range n {
			put(i, 1)
		}
		e := must[*Engine](t)(New(server.Config(), Options{Hot: 1}))
		ours := e.NewInformer(gadgets(t, server.Config(), e.HTTPClient()), &gadget{}, 0, nil)
		client := &http.Client{Transport: server.Config().Transport}
		theirs := cache.NewSharedIndexInformer(gadgets(t, server.Config(), client), &gadget{}, 0, nil)
		start(t, ours)
		start(t, theirs)
		pass(time.Second)
		compare := func() {
			for _, obj := range ours.GetStore().List() {
				want, _, err := theirs.GetStore().Get(obj)
				if err != nil || !reflect.DeepEqual(obj, want) {
					t.Errorf("%+v, want %+v, %v", obj, want, err)
				}
			}
		}
		for range readsToKeep {
			compare()
		}
		put(0, 2)
		pass(time.Second)
		compare()
		if got := kept(e); got != n {
			t.Errorf("%d of %d are kept", got, n)
		}
		pass(3 * packUnreadEvery)
		if st := e.Stats(); st.Kept != 0 || st.Informers[0].Kept != 0 || st.Informers[0].Unpacked != 0 {
			t.Errorf("they stay decoded: %+v", st.Informers[0])
		}
		for _, entry := range ours.(*sharedInformer).table.list {
			if entry.item.v == nil {
				t.Errorf("%s is not packed", entry.key)
			}
		}
		compare()
	})
}

// TestAReadIsRemembered: what is read more readsToKeep than every ten minutes stays decoded, whenever it is looked for, and
// though it changes between.
func TestAReadIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, i, s := filled(t, Options{Hot: 1}, 10)
		for round := range 20 {
			i.GetStore().List()
			s.modify(pod("a/p7", "7", fmt.Sprint("n", round)))
			pass(packUnreadEvery * 7 / 20)
			s.modify(pod("a/p7", "7", fmt.Sprint("m", round)))
			pass(packUnreadEvery * 7 / 20)
			if round > 0 && kept(e) != 10 {
				t.Errorf("after %d reads, %d are kept", round+1, kept(e))
			}
		}
	})
}
