package informer_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// asksFor checks the format that sources request.
func asksFor(t *testing.T, c *informer.Cluster, why, want string) {
	t.Helper()
	if text := status(t, c); !strings.Contains(text, fmt.Sprintf(`"format": %q`, want)) {
		t.Errorf("%s: want %s in %s", why, want, text)
	}
}

// TestInternalErrorsMinutesApart: 500s minutes apart do not add up; each is a passing failure.
func TestInternalErrorsMinutesApart(t *testing.T) {
	bubble(t, informer.Options{}, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
		failure := informertest.Fault{Protobuf: true, Code: http.StatusInternalServerError, Times: 1}
		server.Misbehave(failure)
		must(informer.For[*corev1.Pod](c))(t)
		pass(150)
		for range 4 {
			server.Misbehave(failure)
			server.CloseWatches()
			pass(150)
			asksFor(t, c, "after a 500", "protobuf")
		}
	})
}

// TestProtobufComesBack: a server without protobuf may support it later: it is requested again minutes after 500s, and
// an hour after a refusal of the format.
func TestProtobufComesBack(t *testing.T) {
	for code, within := range map[int][2]time.Duration{
		http.StatusInternalServerError:  {5 * time.Minute, 30 * time.Minute},
		http.StatusNotAcceptable:        {45 * time.Minute, 90 * time.Minute},
		http.StatusUnsupportedMediaType: {45 * time.Minute, 90 * time.Minute},
	} {
		bubble(t, informer.Options{}, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
			heal := server.Misbehave(informertest.Fault{Protobuf: true, Code: code})
			all := must(informer.For[*corev1.Pod](c))(t)
			synced(t, c)
			server.CloseWatches()
			pass(5)
			asksFor(t, c, fmt.Sprint("after ", code), "JSON")
			heal()
			s := must(all.Subscribe("skip", informer.SubscribeOptions{SkipInitial: true}))(t)
			began := time.Now()
			for time.Since(began) < within[0] {
				pass(60)
				asksFor(t, c, fmt.Sprint("soon after ", code), "JSON")
			}
			for time.Since(began) < within[1] {
				pass(60)
			}
			asksFor(t, c, fmt.Sprint("long after ", code), "protobuf")
			server.Put(pods, "a", "one", podFields("one", "node-9"))
			pass(1)
			server.Skip(5)
			server.SetDown(true)
			server.Compact()
			server.SetDown(false)
			pass(60) // a list in protobuf, of objects that are stored in JSON
			server.Put(pods, "a", "two", podFields("two", "node-9"))
			pass(1)
			if got := take(t, s); strings.Count(got, "updated") != 2 || strings.Count(got, "\n") != 1 {
				t.Errorf("after %d: objects in another format changed: %s", code, got)
			}
			if n := strings.Count(strings.Join(server.Requests(), " "), "sendInitialEvents"); n != 2 && n != 3 {
				t.Errorf("after %d: %d lists", code, n)
			}
		})
	}
}

// TestFormsInTwoFormats: some objects are stored in JSON, since the server lacked protobuf for a while. A change of form
// compares their contents, too.
func TestFormsInTwoFormats(t *testing.T) {
	for _, listed := range []bool{false, true} {
		t.Run(fmt.Sprintf("listed %t", listed), func(t *testing.T) {
			bubble(t, informer.Options{}, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
				heal := server.Misbehave(informertest.Fault{Protobuf: true, Code: http.StatusInternalServerError})
				all := must(informer.For[*corev1.Pod](c))(t)
				synced(t, c)
				heal()
				pass(30 * 60)
				server.CloseWatches()
				pass(60)
				asksFor(t, c, "long after the error", "protobuf")
				server.Put(pods, "a", "one", podFields("one", "node-9"))
				server.ChangeForm(pods, func(o map[string]any) { o["spec"].(map[string]any)["hostname"] = "new" })
				if listed {
					server.Skip(5)
					server.Compact()
					server.CloseWatches()
				}
				pass(15 * 60)
				for p, err := range all.All() {
					if err != nil || p.Spec.Hostname != "new" {
						t.Errorf("%s: %q, %v", p.Name, p.Spec.Hostname, err)
					}
				}
			})
		})
	}
}
