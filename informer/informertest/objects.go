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

// resource is the objects of one kind, and their history. Server.mu guards it.
type resource struct {
	kind    *kind
	served  bool
	objects map[key]*object
	sorted  []*object // all objects by namespace and name; nil: not known

	forms []func(map[string]any) // what ChangeForm added

	log    []change // in the order of their versions
	first  int      // how many changes there were before log[0]
	oldest uint64   // as Server.oldest, of this kind
}

// key names an object of a kind.
type key struct{ namespace, name string }

func (k key) compare(o key) int {
	return cmp.Or(cmp.Compare(k.namespace, o.namespace), cmp.Compare(k.name, o.name))
}

// change is an entry of the history.
type change struct {
	rv       uint64
	old, new *object // nil: absent
}

// resource returns the resource, which is not served where it is new; s.mu is held.
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

// write makes a change, and returns the object as it is served; s.mu is held and s.rv is the version of the
// change.
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
	if s.keep > 0 && len(res.log) >= 2*s.keep { // by halves, so that it costs nothing
		n := len(res.log) - s.keep
		res.oldest = res.log[n-1].rv
		res.log = slices.Clone(res.log[n:])
		res.first += n
	}
	return now
}

// uid returns the identity of what is to be written under a key.
func (s *Server) uid(old *object) string {
	if old != nil {
		return old.uid
	}
	s.uids++
	return fmt.Sprintf("uid-%d", s.uids)
}

// Put creates or updates an object and returns its new version. Fields are those of the object
// beside what the server sets (apiVersion, kind, namespace, name, uid, resourceVersion); it is not
// changed. JSON shows them as they are. Where protobuf is asked for, they are read into the kind's Go
// type as a real server reads what is written to it: unknown fields vanish, and a value that the type
// cannot hold panics.
func (s *Server) Put(gvr schema.GroupVersionResource, namespace, name string, fields map[string]any) string {
	defer s.lock()()
	res, k := s.resource(gvr), key{namespace, name}
	if res.kind.name == "" || name == "" {
		panic(fmt.Sprintf("informertest: put %s %q: an object needs a name, and its kind a call of Serve before", gvr.GroupResource(), name))
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

// PutObject creates or updates an object, which is not changed, and returns its new version. The
// server sets the resource version and, unless the object is new and brings its own, the UID. It
// panics if the object is not of the Go type that the kind has.
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
		panic(fmt.Sprintf("informertest: a %T is no %s", o, kind.name))
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

// toFields returns any object as a map that nobody else has.
func toFields(o runtime.Object) map[string]any {
	if u, ok := o.(*unstructured.Unstructured); ok {
		return u.DeepCopy().Object
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		panic(fmt.Sprintf("informertest: a %T that is no object: %v", o, err))
	}
	return fields
}

// ServeGenerated adds a kind with n objects that generate makes, each time one is asked for, so that
// the server only holds their keys. It must return the same for the same i in [0, n), from any
// goroutine, always another key for another i, and the Go type that client-go's scheme has for the
// kind. The server sets the resource version and, where it is empty, the UID. They can be updated and
// deleted like others; there is no history of their creation.
func (s *Server) ServeGenerated(gvr schema.GroupVersionResource, kind string, n int, generate func(i int) runtime.Object) {
	s.Serve(gvr, kind)
	defer s.lock()()
	res := s.resource(gvr)
	for i := range n {
		made := generate(i)
		if !res.kind.is(made) {
			panic(fmt.Sprintf("informertest: a %T is no %s with a protobuf encoding", made, kind))
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

// Delete deletes an object and returns the version of that, or "" where it does not exist.
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

// Objects returns the objects of a kind by "namespace/name". They are shared: not to be written to.
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

// Move serves a kind and its objects under another version of its group, and no longer under the old
// one, as after a change of its CRD: UIDs and resource versions stay.
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
	moved.sorted, moved.oldest = nil, s.rv // there is no history under another version
	delete(s.resources, from)
	s.closed++
}

func formatVersion(rv uint64) string { return strconv.FormatUint(rv, 10) }
