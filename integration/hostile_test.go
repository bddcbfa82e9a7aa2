package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tattler-dev/tattler/event"
)

// hostileCRD is a definition without a schema: anything goes.
const hostileCRD = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"hostiles.hostile.example.com"},
"spec":{"group":"hostile.example.com","scope":"Namespaced","names":{"plural":"hostiles","singular":"hostile","kind":"Hostile"},"versions":[{"name":"v1","served":true,
"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`

// hostileSpecs are made to cost a recorder far more than they are. V differs between the versions of an object.
var hostileSpecs = map[string]func(v string) string{
	"deep and wide":  func(v string) string { return around(1000, `{"a":`, wide(10000, `"f%d":"`+v+`"`), `}`) },
	"deeper":         func(v string) string { return around(3000, `{"a":`, wide(10000, `"f%d":"`+v+`"`), `}`) },
	"deepest":        func(v string) string { return around(9000, `{"a":`, `"`+v+`"`, `}`) },
	"lists in lists": func(v string) string { return `{"a":` + around(4000, `[`, wide(3000, `"f%d":"`+v+`"`), `]`) + `}` },
	"a leaf on each level": func(v string) string {
		return around(4000, `{"v":"`+v+`","a":`, `{}`, `}`)
	},
	"long names": func(v string) string {
		return around(10, `{"`+strings.Repeat("n", 5000)+`":`, wide(1000, `"`+strings.Repeat("x", 100)+`%d":"`+v+`"`), `}`)
	},
	"wide":          func(v string) string { return wide(20000, `"field%d":"`+v+`"`) },
	"small objects": func(v string) string { return `{"l":[` + repeated(20000, `{"a":"`+v+`"}`) + `]}` },
	"empty objects": func(v string) string { return `{"v":"` + v + `","l":[` + repeated(60000, `{}`) + `]}` },
	"merge keys": func(v string) string {
		return `{"l":[` + repeated(2000, `{"name":"n%d","v":"`+v+`"}`) + `]}`
	},
	"passwords": func(v string) string {
		return around(500, `{"password":"`+v+`","a":`, wide(5000, `"token%d":"`+v+`"`), `}`)
	},
	"JSON in JSON": func(v string) string {
		return `{"text":` + strconv.Quote(around(2000, `{"password":"`+v+`","a":`, `1`, `}`)) + `}`
	},
	"looks hidden":  func(v string) string { return wide(5000, `"f%d":"hidden #0123456789abcdef"`) + "" },
	"control marks": func(v string) string { return `{"a":"\u001b[2J\u202e` + v + `","\u0000\u009b":"` + v + `"}` },
	"numbers": func(v string) string {
		return `{"v":"` + v + `","l":[` + repeated(20000, `1e300`) + `,-0.0,9223372036854775807]}`
	},
}

func around(n int, open, inner, end string) string {
	return strings.Repeat(open, n) + inner + strings.Repeat(end, n)
}

func wide(n int, field string) string { return `{` + repeated(n, field) + `}` }

func repeated(n int, format string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strings.Replace(format, "%d", strconv.Itoa(i), 1))
	}
	return b.String()
}

// TestHostileObjects: whoever may write custom resources cannot stop the recorder, nor what it records of others.
func TestHostileObjects(t *testing.T) {
	const limit = 256 << 20
	objects := len(hostileSpecs)
	if n, err := strconv.Atoi(os.Getenv("TATTLER_HOSTILE")); err == nil {
		objects = n
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	own, client := ownCluster(ctx, t)
	post := func(verb, path string, body string) error {
		r := client.RESTClient().Verb(verb).AbsPath(path).SetHeader("Content-Type", "application/json").Body([]byte(body))
		return r.Do(ctx).Error()
	}
	if err := post("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", hostileCRD); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	out := filepath.Join(dir, "changes.jsonl")
	// The race detector, with which this test binary may have been built, takes more memory than the daemon.
	program := filepath.Join(dir, "tattler")
	goCommand(t, repository, os.Environ(), "build", "-o", program, "./cmd/tattler")
	p := startProgram(t, own, program, []string{"GOMEMLIMIT=" + strconv.Itoa(limit*3/4)}, "run", "--journal", filepath.Join(dir, "journal.db"), "--to", "file:"+out)
	p.wait(t, p.err, "msg=recording")
	const collection = "/apis/hostile.example.com/v1/namespaces/default/hostiles"
	for began := time.Now(); post("GET", collection, "") != nil; pause() {
		if time.Since(began) > patience {
			t.Fatal("the kind is not served")
		}
	}
	refused, n := 0, 0
	want := map[string]bool{}
	for n < objects {
		for name, spec := range hostileSpecs {
			if n++; n > objects {
				break
			}
			hostile := func(v, rv string) string {
				return fmt.Sprintf(`{"apiVersion":"hostile.example.com/v1","kind":"Hostile","metadata":{"name":"h%d"%s},"spec":%s}`, n, rv, spec(v))
			}
			if err := post("POST", collection, hostile("before", "")); err != nil {
				refused++
				t.Logf("the server refuses %q: %.200v", name, err)
				continue
			}
			want[fmt.Sprintf("created h%d", n)] = true
			var o metav1.PartialObjectMetadata
			raw, err := client.RESTClient().Get().AbsPath(collection + fmt.Sprintf("/h%d", n)).DoRaw(ctx)
			if err == nil {
				err = json.Unmarshal(raw, &o)
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if err := post("PUT", collection+fmt.Sprintf("/h%d", n), hostile("after", fmt.Sprintf(`,"resourceVersion":%q`, o.ResourceVersion))); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			want[fmt.Sprintf("updated h%d", n)] = name != "looks hidden"
			bystander(ctx, t, client, n)
			want[fmt.Sprintf("created b%d", n)] = true
		}
	}
	if refused > objects/3 {
		t.Errorf("the server refused %d of %d", refused, objects)
	}
	missing := func() []string {
		got := recordedIn(t, out)
		var all []string
		for w, is := range want {
			if is && !got[w] {
				all = append(all, w)
			}
		}
		return all
	}
	for began := time.Now(); len(missing()) > 0; pause() {
		select {
		case err := <-p.done:
			t.Fatalf("the daemon has ended: %v\n%s", err, p.read(t, p.err))
		default:
		}
		if time.Since(began) > 5*time.Minute {
			t.Fatalf("not recorded: %q\n%s", missing(), tail(p.read(t, p.err)))
		}
	}
	if peak := peakMemory(t, p.cmd.Process.Pid); peak > limit {
		t.Errorf("it took %d MiB of %d MiB", peak>>20, limit>>20)
	} else {
		t.Logf("%d objects, %d refused by the server: it took %d MiB", objects, refused, peak>>20)
	}
	p.interrupt(t)
	if text := p.read(t, p.err); strings.Contains(text, "gap") {
		t.Errorf("there are gaps: %s", grepLines(text, "gap"))
	}
}

// bystander writes an ordinary object.
func bystander(ctx context.Context, t *testing.T, client *kubernetes.Clientset, n int) {
	t.Helper()
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("b", n)}, Data: map[string]string{"k": "v"}}
	if _, err := client.CoreV1().ConfigMaps("default").Create(ctx, o, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// recordedIn returns the changes in a file as "op name".
func recordedIn(t *testing.T, path string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for line := range bytes.Lines(text) {
		var e struct {
			Data struct {
				Op       event.Op `json:"op"`
				Resource struct {
					Name string `json:"name"`
				} `json:"resource"`
			} `json:"data"`
		}
		if err := json.Unmarshal(line, &e); err == nil {
			got[string(e.Data.Op)+" "+e.Data.Resource.Name] = true
		}
	}
	return got
}

var peakLine = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peakMemory is the most memory that a process has had.
func peakMemory(t *testing.T, pid int) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatalf("the test needs /proc: %v", err)
	}
	m := peakLine.FindSubmatch(status)
	if m == nil {
		t.Fatalf("no peak in %s", status)
	}
	kib, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}
