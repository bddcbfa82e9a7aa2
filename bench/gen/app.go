package gen

import (
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// Apps is the number of applications of New.
	Apps = 200
	// places is the number of revisions, namespaces and jobs of an application.
	places = 3
)

// app is one application: a variation of a workload.
type app struct {
	name, account string // account is the service account
	seed          uint64
	base          *Workload
	baseName      string
	owner         metav1.OwnerReference // the recorded one
	containers    int                   // of a pod, at most, init containers included
	places        [places]place

	mu    sync.Mutex
	forms [numStates][]byte // the pod in each state, in protobuf, in the first place, with the recorded identity
}

// place is one revision of an application in one namespace.
type place struct {
	namespace, owner, hash string
	ownerUID               types.UID
}

// newApp generates the i-th application.
func newApp(seed uint64, i int) *app {
	r := newRandom(seed, saltApp+uint64(i))
	a := &app{seed: r.Uint64(), base: &corpus().Workloads[r.IntN(len(corpus().Workloads))]}
	pod := a.base.Pods[running]
	a.owner = pod.GetOwnerReferences()[0]
	a.baseName = a.base.Name
	if a.owner.Kind == "Job" { // the name has a time
		a.baseName = a.baseName[:strings.LastIndexByte(a.baseName, '-')]
	}
	a.name = fmt.Sprintf("%s-%s", areas[i%len(areas)], roles[(i/len(areas)*7+i)%len(roles)])
	if i >= Apps {
		a.name += fmt.Sprint("-", i/Apps)
	}
	a.account, _, _ = unstructured.NestedString(pod.Object, "spec", "serviceAccountName")
	if a.account == a.baseName {
		a.account = a.name
	}
	for _, list := range []string{"initContainers", "containers"} {
		all, _, _ := unstructured.NestedSlice(pod.Object, "spec", list)
		a.containers += len(all)
	}
	a.place(r)
	return a
}

func (a *app) place(r random) {
	first, second := r.IntN(Namespaces), r.IntN(Namespaces)
	for i := range a.places {
		p := &a.places[i]
		p.namespace = namespaceName(first)
		if i == 2 {
			p.namespace = namespaceName(second)
		}
		p.ownerUID = types.UID(r.uid())
		p.hash = r.string(letters, 10)
		switch a.owner.Kind {
		case "ReplicaSet":
			p.owner = a.name + "-" + p.hash
		case "Job":
			p.owner = fmt.Sprintf("%s-%d", a.name, 29_300_000+r.IntN(90_000))
		default: // owners of one name must be in different namespaces
			p.owner = fmt.Sprintf("%s-%s", a.name, pick(r, "a", "b", "main", "eu", "blue", "x")+fmt.Sprint(i))
		}
	}
}

// pod returns the application's pod in a state, in a place, with the recorded identity.
func (a *app) pod(s state, at int) *corev1.Pod {
	a.mu.Lock()
	if a.forms[s] == nil {
		a.forms[s] = Encode(Protobuf, a.variation(s))
	}
	form := a.forms[s]
	a.mu.Unlock()
	pod := &corev1.Pod{}
	if err := pod.Unmarshal(form); err != nil {
		panic(fmt.Sprintf("gen: decode a pod: %v", err))
	}
	a.move(pod, a.places[at])
	return pod
}

// move makes the pod one of the place's owner.
func (a *app) move(pod *corev1.Pod, p place) {
	pod.Namespace = p.namespace
	owner := &pod.OwnerReferences[0]
	for i := range pod.ManagedFields {
		replaceFields(&pod.ManagedFields[i], string(owner.UID), string(p.ownerUID))
	}
	owner.Name, owner.UID = p.owner, p.ownerUID
	if pod.GenerateName != "" {
		pod.GenerateName = p.owner + "-"
	}
	hash := p.hash
	if a.owner.Kind == "StatefulSet" {
		hash = p.owner + "-" + p.hash
	}
	for key, value := range map[string]string{
		"pod-template-hash": p.hash, "controller-revision-hash": hash,
		"controller-uid": string(p.ownerUID), "batch.kubernetes.io/controller-uid": string(p.ownerUID),
		"job-name": p.owner, "batch.kubernetes.io/job-name": p.owner,
	} {
		if _, ok := pod.Labels[key]; ok {
			pod.Labels[key] = value
		}
	}
}

// replaceFields replaces a text in managed fields.
func replaceFields(e *metav1.ManagedFieldsEntry, from, to string) {
	e.FieldsV1 = metav1.NewFieldsV1(strings.ReplaceAll(e.FieldsV1.GetRawString(), from, to))
}

// Names of the applications.
var (
	areas = []string{
		"checkout", "payments", "ledger", "catalog", "search", "recommend", "session", "auth", "gateway", "edge",
		"mailer", "notifier", "billing", "invoice", "inventory", "pricing", "shipping", "tracker", "geo", "maps",
		"feed", "timeline", "media", "thumbs", "transcode", "ingest", "collector", "etl", "warehouse", "reports",
		"metrics", "logs", "audit", "policy", "flags", "profile", "consent", "fraud", "risk", "ads",
	}
	roles = []string{"api", "web", "worker", "consumer", "sync", "cache", "db", "gw", "scheduler", "bff", "indexer"}
)
