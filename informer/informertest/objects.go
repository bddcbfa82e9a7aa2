package informertest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// resource holds the objects of one kind and their history. Server.mu guards it.
type resource struct {
	kind    *kind
	served  bool
	objects map[key]*object
	sorted  []*object // all objects by namespace and name; nil: not computed

	forms []func(map[string]any) // added by ChangeForm

	log    []change // in version order
	first  int      // number of changes before log[0]
	oldest uint64   // like Server.oldest, for this kind
}

// key identifies an object of a kind.
type key struct{ namespace, name string }

func (k key) compare(o key) int {
	return cmp.Or(cmp.Compare(k.namespace, o.namespace), cmp.Compare(k.name, o.name))
}

// change is an entry of the history.
type change struct {
	rv       uint64
	old, new *object // nil: absent
}

// resource returns the resource; a new one is not served. s.mu is held.
func (s *Server) resource(gvr schema.GroupVersionResource) *resource {
	res := s.resources[gvr]
	if res == nil {
		res = &resource{kind: &kind{gvr: gvr}, objects: map[key]*object{}}
		s.resources[gvr] = res
	}
	return res
}

// inOrder returns all objects by namespace and name, shared.
func (res *resource) inOrder() []*object {
	if res.sorted == nil {
		res.sorted = slices.SortedFunc(maps.Values(res.objects), func(a, b *object) int { return a.compare(b.key) })
	}
	return res.sorted
}

// write makes a change at version s.rv and returns the object in its served form; s.mu is held.
func (s *Server) write(res *resource, k key, now *object) *object {
	old := res.objects[k]
	now = res.formed(now)
	if now == nil {
		delete(res.objects, k)
	} else {
		res.objects[k] = now
	}
	res.sorted = nil
	s.written = s.rv
	res.log = append(res.log, change{s.rv, old, now})
	if s.keep > 0 && len(res.log) >= 2*s.keep { // in halves, to amortize the cost
		n := len(res.log) - s.keep
		res.oldest = res.log[n-1].rv
		res.log = slices.Clone(res.log[n:])
		res.first += n
	}
	return now
}

// uid returns the UID for a write: the old object's, or a new one.
func (s *Server) uid(old *object) string {
	if old != nil {
		return old.uid
	}
	s.uids++
	return fmt.Sprintf("uid-%d", s.uids)
}

// Put creates or updates an object and returns its new version. fields are the object's fields except those
// that the server sets (apiVersion, kind, namespace, name, uid, resourceVersion); Put does not modify the map.
// JSON shows the fields unchanged. For protobuf they are read into the kind's Go type as a real server reads a
// written object: unknown fields vanish, and a value that the type cannot hold panics.
func (s *Server) Put(gvr schema.GroupVersionResource, namespace, name string, fields map[string]any) string {
	defer s.lock()()
	res, k := s.resource(gvr), key{namespace, name}
	if res.kind.name == "" || name == "" {
		panic(fmt.Sprintf("informertest: put %s %q: an object needs a name, and its kind must be served", gvr.GroupResource(), name))
	}
	s.rv++
	uid := s.uid(res.objects[k])
	o := maps.Clone(fields)
	if o == nil {
		o = map[string]any{}
	}
	o["apiVersion"], o["kind"] = res.kind.apiVersion(), res.kind.name
	given, _ := o["metadata"].(map[string]any)
	m := map[string]any{}
	maps.Copy(m, given)
	m["name"], m["uid"], m["resourceVersion"] = name, uid, s.version()
	if namespace != "" {
		m["namespace"] = namespace
	}
	o["metadata"] = m
	s.write(res, k, &object{key: k, rv: s.rv, uid: uid, fields: o})
	return s.version()
}

// PutObject creates or updates an object and returns its new version; it does not modify o. The server sets the
// resource version. It sets the UID too, except that a new object may have its own. PutObject panics if o is
// not of the kind's Go type.
func (s *Server) PutObject(gvr schema.GroupVersionResource, o runtime.Object) string {
	m, err := meta.Accessor(o)
	if err != nil {
		panic(fmt.Sprintf("informertest: put a %T: %v", o, err))
	}
	k := key{m.GetNamespace(), m.GetName()}
	s.mu.Lock()
	kind := s.resource(gvr).kind
	s.mu.Unlock()
	if kind.new == nil {
		return s.Put(gvr, k.namespace, k.name, toFields(o))
	}
	if !kind.is(o) {
		panic(fmt.Sprintf("informertest: a %T is not a %s", o, kind.name))
	}
	o = o.DeepCopyObject()
	defer s.lock()()
	s.rv++
	res := s.resource(gvr)
	uid := string(m.GetUID())
	if old := res.objects[k]; old != nil || uid == "" {
		uid = s.uid(old)
	}
	s.write(res, k, newTyped(o, k, s.rv, uid))
	return s.version()
}

// toFields returns any object as a private map.
func toFields(o runtime.Object) map[string]any {
	if u, ok := o.(*unstructured.Unstructured); ok {
		return u.DeepCopy().Object
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		panic(fmt.Sprintf("informertest: %T is not an object: %v", o, err))
	}
	return fields
}

// ServeGenerated adds a kind with n objects that generate makes on each access, so that the server only stores
// their keys. For i in [0, n), generate must be deterministic, safe for concurrent use, and return a distinct
// key and the Go type of the kind in client-go's scheme. The server sets the resource version and, if it is
// empty, the UID. The objects can be updated and deleted like others; their creation is not in the history.
func (s *Server) ServeGenerated(gvr schema.GroupVersionResource, kind string, n int, generate func(i int) runtime.Object) {
	s.Serve(gvr, kind)
	defer s.lock()()
	res := s.resource(gvr)
	for i := range n {
		made := generate(i)
		if !res.kind.is(made) {
			panic(fmt.Sprintf("informertest: a %T is not a %s with a protobuf encoding", made, kind))
		}
		m, err := meta.Accessor(made)
		if err != nil {
			panic(fmt.Sprintf("informertest: generate a %T: %v", made, err))
		}
		s.rv++
		o := &object{key: key{m.GetNamespace(), m.GetName()}, rv: s.rv, generate: func() runtime.Object { return generate(i) }}
		if o.uid = string(m.GetUID()); o.uid == "" {
			o.uid = s.uid(nil)
		}
		res.objects[o.key] = res.formed(o)
	}
	res.sorted, res.log, res.first = nil, nil, res.first+len(res.log)
	res.oldest, s.written = s.rv, s.rv
}

// Delete deletes an object and returns the version of the deletion, or "" if it does not exist.
func (s *Server) Delete(gvr schema.GroupVersionResource, namespace, name string) string {
	defer s.lock()()
	res, k := s.resource(gvr), key{namespace, name}
	if res.objects[k] == nil {
		return ""
	}
	s.rv++
	s.write(res, k, nil)
	return s.version()
}

// Objects returns the objects of a kind by "namespace/name". They are shared and must not be modified.
func (s *Server) Objects(gvr schema.GroupVersionResource) map[string]map[string]any {
	s.mu.Lock()
	res := s.resource(gvr)
	kind, objects := res.kind, res.inOrder()
	s.mu.Unlock()
	all := map[string]map[string]any{}
	for _, o := range objects {
		all[o.namespace+"/"+o.name] = o.asFields(kind)
	}
	return all
}

// Move serves a kind and its objects under another version of its group, and no longer under the old one, as
// after a change of its CRD. UIDs and resource versions stay.
func (s *Server) Move(from schema.GroupVersionResource, version string) {
	s.mu.Lock()
	name, status := s.resource(from).kind.name, s.resource(from).kind.status
	s.mu.Unlock()
	to := from.GroupResource().WithVersion(version)
	s.Serve(to, name)
	if status {
		s.ServeStatus(to)
	}
	defer s.lock()()
	old, moved := s.resource(from), s.resource(to)
	for k, o := range old.objects {
		converted := maps.Clone(o.asFields(old.kind))
		converted["apiVersion"] = to.GroupVersion().String()
		moved.objects[k] = &object{key: k, rv: o.rv, uid: o.uid, fields: converted}
	}
	for k, o := range moved.objects {
		moved.objects[k] = moved.formed(o)
	}
	moved.sorted, moved.oldest = nil, s.rv // another version has no history
	delete(s.resources, from)
	s.closed++
}

func formatVersion(rv uint64) string { return strconv.FormatUint(rv, 10) }
