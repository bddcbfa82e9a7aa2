package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tattler-dev/tattler/event"
)

// hostileCRD is a CRD without a schema, so that any field is allowed.
const hostileCRD = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"hostiles.hostile.example.com"},
"spec":{"group":"hostile.example.com","scope":"Namespaced","names":{"plural":"hostiles","singular":"hostile","kind":"Hostile"},"versions":[{"name":"v1","served":true,
"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`

const hostileObjects = "/apis/hostile.example.com/v1/namespaces/default/hostiles"

// hostileShapes make fields that should cost a recorder far more than their size. v differs between versions of
// an object.
var hostileShapes = []struct {
	name   string
	fields func(v string) string
}{
	{"deep and wide", func(v string) string { return spec(around(1000, `{"a":`, wide(10000, `"f%d":"`+v+`"`), `}`)) }},
	{"deeper", func(v string) string { return spec(around(3000, `{"a":`, wide(10000, `"f%d":"`+v+`"`), `}`)) }},
	{"deepest", func(v string) string { return spec(around(9000, `{"a":`, `"`+v+`"`, `}`)) }},
	{"lists in lists", func(v string) string {
		return spec(around(4000, `[`, wide(3000, `"f%d":"`+v+`"`), `]`))
	}},
	{"a leaf on each level", func(v string) string { return spec(around(4000, `{"v":"`+v+`","a":`, `{}`, `}`)) }},
	{"long names", func(v string) string {
		return spec(around(10, `{"`+strings.Repeat("n", 5000)+`":`, wide(1000, `"`+strings.Repeat("x", 100)+`%d":"`+v+`"`), `}`))
	}},
	{"wide", func(v string) string { return spec(wide(20000, `"field%d":"`+v+`"`)) }},
	{"small objects", func(v string) string { return spec(`[` + repeated(20000, `{"a":"`+v+`"}`) + `]`) }},
	{"empty objects", func(v string) string { return spec(`{"v":"` + v + `","l":[` + repeated(60000, `{}`) + `]}`) }},
	{"merge keys", func(v string) string { return spec(`[` + repeated(2000, `{"name":"n%d","v":"`+v+`"}`) + `]`) }},
	{"merge keys that all move", func(v string) string {
		names := make([]string, 4000)
		for i := range names {
			names[i] = fmt.Sprintf(`{"name":"n%d"}`, i)
		}
		if v == "after" {
			slices.Reverse(names)
		}
		return spec(`[` + strings.Join(names, ",") + `]`)
	}},
	{"passwords", func(v string) string {
		return spec(around(500, `{"password":"`+v+`","a":`, wide(5000, `"token%d":"`+v+`"`), `}`))
	}},
	{"JSON in JSON", func(v string) string {
		return spec(strconv.Quote(around(2000, `{"password":"`+v+`","a":`, `1`, `}`)))
	}},
	{"JSON in JSON in JSON", func(v string) string {
		text := `{"password":"` + v + `"}`
		for len(text) < 200_000 {
			quoted, err := json.Marshal(map[string]string{"a": text, "token": v})
			if err != nil {
				panic(err)
			}
			text = string(quoted)
		}
		return spec(strconv.Quote(text))
	}},
	{"one long text", func(v string) string { return spec(`"` + strings.Repeat("password="+v+" ", 30000) + `"`) }},
	{"many lines", func(v string) string {
		return spec(`"` + strings.Repeat(`- a: &a *a\n`, 30000) + v + `"`)
	}},
	{"looks hidden", func(v string) string {
		return spec(`{"v":"` + v + `","l":` + wide(5000, `"f%d":"hidden #0123456789abcdef"`) + `}`)
	}},
	{"terminal escape sequences", func(v string) string {
		return spec(`{"a":"\u001b[2J\u202e` + v + `","\u0000\u009b":"` + v + `"}`)
	}},
	{"numbers", func(v string) string {
		return spec(`{"v":"` + v + `","l":[` + repeated(20000, `1e300`) + `,-0.0,9223372036854775807]}`)
	}},
	{"names like paths", func(v string) string {
		return spec(wide(2000, `"a.b[%d].\"*\"/~1~0":"`+v+`"`) + `,"":{"":"` + v + `"}`)
	}},
	{"annotations", func(v string) string {
		return spec(`"`+v+`"`) + `,"metadata":{"annotations":` + wide(8000, `"a%d.example.com/token":"`+v+`"`) + `}`
	}},
	{"an object in an annotation", func(v string) string {
		return spec(`"`+v+`"`) + `,"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":` +
			strconv.Quote(around(1000, `{"a":`, wide(5000, `"f%d":"`+v+`"`), `}`)) + `}}`
	}},
	{"owners", func(v string) string {
		return spec(`"`+v+`"`) + `,"metadata":{"ownerReferences":[` + repeated(2000, `{"apiVersion":"v1","kind":"Pod","name":"p%d","uid":"u%d"}`) + `]}`
	}},
	{"finalizers", func(v string) string {
		return spec(`"`+v+`"`) + `,"metadata":{"finalizers":[` + repeated(5000, `"example.com/f%d"`) + `]}`
	}},
}

func spec(value string) string { return `"spec":{"a":` + value + `}` }

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
		b.WriteString(strings.ReplaceAll(format, "%d", strconv.Itoa(i)))
	}
	return b.String()
}

// hostileSpec makes a value of about size bytes that is deep, wide, long, or all of these.
func hostileSpec(rng *rand.Rand, v string, size int) string {
	if size < 40 {
		return `"` + v + `"`
	}
	switch n := 1 + rng.IntN(20); rng.IntN(6) {
	case 0: // deep
		levels := 1 + rng.IntN(min(2000, size/10))
		return around(levels, `{"a":`, hostileSpec(rng, v, size-6*levels), `}`)
	case 1:
		levels := 1 + rng.IntN(min(2000, size/4))
		return around(levels, `[`, hostileSpec(rng, v, size-2*levels), `]`)
	case 2: // wide
		return wide(size/30, `"`+[]string{"f", "token", "a.b/", "password"}[rng.IntN(4)]+`%d":"`+v+`"`)
	case 3: // long
		name := strings.Repeat("n", 1+rng.IntN(size/2))
		return `{"` + name + `":` + hostileSpec(rng, v, size-len(name)) + `}`
	case 4:
		parts := make([]string, n)
		for i := range parts {
			parts[i] = `"k` + strconv.Itoa(i) + `":` + hostileSpec(rng, v, size/n)
		}
		return `{` + strings.Join(parts, ",") + `}`
	default:
		parts := make([]string, n)
		for i := range parts {
			parts[i] = `{"name":"` + strconv.Itoa(i) + `","v":` + hostileSpec(rng, v, size/n) + `}`
		}
		return `[` + strings.Join(parts, ",") + `]`
	}
}

// hostile returns the fields of the n-th object in a version: first the fixed shapes, then random ones.
func hostile(seed uint64, n int, v string) (name, fields string) {
	if n < len(hostileShapes) {
		return hostileShapes[n].name, hostileShapes[n].fields(v)
	}
	rng := rand.New(rand.NewPCG(seed, uint64(n))) // the same for both versions
	return "by chance", spec(`{"v":"` + v + `","x":` + hostileSpec(rng, v, 1000+rng.IntN(300_000)) + `}`)
}

// TestHostileObjects: users who may write custom resources must not be able to stop the recorder or hide other
// changes. TATTLER_HOSTILE is the number of objects.
func TestHostileObjects(t *testing.T) {
	t.Parallel()
	const limit = 256 << 20
	objects, seed := len(hostileShapes)+8, rand.Uint64N(1e9)
	if n, err := strconv.Atoi(os.Getenv("TATTLER_HOSTILE")); err == nil {
		objects = n
	}
	if n, err := strconv.ParseUint(os.Getenv("TATTLER_HOSTILE_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("TATTLER_HOSTILE_SEED=%d repeats the objects", seed)
	own, client := ownCluster(t.Context(), t)
	h := hostility{T: t, client: client, want: map[string]bool{}}
	if err := h.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "application/json", hostileCRD); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); h.send("GET", hostileObjects, "", "") != nil; pause() {
		if time.Since(began) > patience {
			t.Fatal("the kind is not served")
		}
	}
	dir := t.TempDir()
	out := filepath.Join(dir, "changes.jsonl")
	// The race detector, with which this test binary may have been built, uses more memory than the daemon.
	program := filepath.Join(dir, "tattler")
	goCommand(t, repository, os.Environ(), "build", "-o", program, "./cmd/tattler")
	p := startProgram(t, own, program, []string{"GOMEMLIMIT=" + strconv.Itoa(limit*3/4)}, "run", "--journal", filepath.Join(dir, "journal.db"), "--to", "file:"+out)
	p.wait(t, p.err, "msg=recording")
	if strings.Contains(p.read(t, p.err), "cannot be watched") {
		t.Fatalf("some kinds are not watched: %s", p.read(t, p.err))
	}
	refused := 0
	for n := range objects {
		if !h.write(seed, n) {
			refused++
		}
	}
	if refused > objects/4 {
		t.Errorf("the server refused %d of %d", refused, objects)
	}
	if h.owners < objects/4 {
		t.Errorf("only %d managers added", h.owners)
	}
	h.await(p, out)
	if peak := peakMemory(t, p.cmd.Process.Pid); peak > limit {
		t.Errorf("the daemon used %d MiB of %d MiB", peak>>20, limit>>20)
	} else {
		t.Logf("%d objects, %d refused by the server, %d more managers: the daemon used %d MiB", objects, refused, h.owners, peak>>20)
	}
	p.interrupt(t)
	if text := p.read(t, p.err); strings.Contains(text, "gap") {
		t.Errorf("there are gaps: %s", grepLines(text, "gap"))
	}
}

// hostility writes objects and collects the changes that must be recorded, as "op name".
type hostility struct {
	*testing.T
	client *kubernetes.Clientset
	want   map[string]bool
	owners int // number of managers added
}

func (h *hostility) send(verb, path, contentType, body string) error {
	return h.client.RESTClient().Verb(verb).AbsPath(path).SetHeader("Content-Type", contentType).Body([]byte(body)).Do(h.Context()).Error()
}

// write creates the n-th object, changes it as several managers, and creates an ordinary object. It returns
// false if the server refuses the object.
func (h *hostility) write(seed uint64, n int) bool {
	h.Helper()
	object := fmt.Sprintf("h%d", n)
	body := func(v, more string) (name, body string) {
		name, fields := hostile(seed, n, v)
		meta := fmt.Sprintf(`"metadata":{"name":%q%s`, object, more)
		if strings.Contains(fields, `,"metadata":{`) {
			fields = strings.Replace(fields, `,"metadata":{`, `,`+meta+`,`, 1)
		} else {
			fields += "," + meta + "}"
		}
		return name, `{"apiVersion":"hostile.example.com/v1","kind":"Hostile",` + fields + `}`
	}
	name, first := body("before", "")
	if err := h.send("POST", hostileObjects, "application/json", first); err != nil {
		h.Logf("the server refuses %q: %.200v", name, err)
		return false
	}
	h.want["created "+object] = true
	var o metav1.PartialObjectMetadata
	raw, err := h.client.RESTClient().Get().AbsPath(hostileObjects, object).DoRaw(h.Context())
	if err == nil {
		err = json.Unmarshal(raw, &o)
	}
	if err != nil {
		h.Fatalf("%s: %v", name, err)
	}
	_, second := body("after", fmt.Sprintf(`,"resourceVersion":%q`, o.ResourceVersion))
	if err := h.send("PUT", hostileObjects+"/"+object, "application/json", second); err != nil {
		h.Fatalf("%s: %v", name, err)
	}
	h.want["updated "+object] = true
	by := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("b", n)}, Data: map[string]string{"k": "v"}}
	if _, err := h.client.CoreV1().ConfigMaps("default").Create(h.Context(), by, metav1.CreateOptions{}); err != nil {
		h.Fatal(err)
	}
	h.want[fmt.Sprintf("created b%d", n)] = true
	if n%8 == 0 {
		_, applied := body("after", "")
		h.own(object, applied)
	}
	return true
}

// own makes many managers own all of an object.
func (h *hostility) own(object, body string) {
	h.Helper()
	for m := range 16 {
		path := fmt.Sprintf("%s/%s?force=true&fieldManager=%s-%d", hostileObjects, object, strings.Repeat("m", 100), m)
		err := h.client.RESTClient().Patch("application/apply-patch+yaml").RequestURI(path).Body([]byte(body)).Do(h.Context()).Error()
		if err != nil { // it has become too large, or is not valid YAML, in which names have at most 1,024 characters
			return
		}
		h.owners++
	}
}

// await waits until a file has all expected changes, as long as the daemon makes progress.
func (h *hostility) await(p *process, out string) {
	h.Helper()
	least, since := len(h.want)+1, time.Now()
	for ; ; pause() {
		got := recordedIn(h.T, out)
		var missing []string
		for w := range h.want {
			if !got[w] {
				missing = append(missing, w)
			}
		}
		if len(missing) == 0 {
			return
		}
		if len(missing) < least {
			least, since = len(missing), time.Now()
		}
		select {
		case err := <-p.done:
			h.Fatalf("the daemon ended: %v\n%s", err, tail(p.read(h.T, p.err)))
		default:
		}
		if time.Since(since) > 2*time.Minute {
			slices.Sort(missing)
			h.Fatalf("not recorded: %q\n%s", missing, tail(p.read(h.T, p.err)))
		}
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

// peakMemory returns a process's peak memory in bytes.
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
