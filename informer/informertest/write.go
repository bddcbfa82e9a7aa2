package informertest

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// errModified is an API server's error for a stale resource version.
//
// Source: k8s.io/apiserver/pkg/registry/generic/registry, OptimisticLockErrorMsg.
var errModified = errors.New("the object has been modified; please apply your changes to the latest version and try again")

// writes reports whether the request's method writes to its path.
func (c *call) writes() bool {
	switch c.r.Method {
	case http.MethodPost:
		return c.at.name == ""
	case http.MethodPut, http.MethodPatch:
		return c.at.name != ""
	case http.MethodDelete:
		return c.at.name != "" && c.at.sub == ""
	}
	return false
}

// write answers a create, update, patch or delete.
func (c *call) write() {
	var o *object
	w, err := c.readWrite()
	if err == nil {
		o, err = c.perform(w)
	}
	switch {
	case err != nil:
		c.refuse(err)
	case o == nil:
		c.answer(func(out io.Writer) error {
			_, err := out.Write(c.whole().status(nil, c.deleted(w.uid)))
			return err
		})
	default:
		if c.r.Method == http.MethodPost {
			c.code = http.StatusCreated
		}
		c.answerObject(o)
	}
}

// whole returns the encoding of a response that is not an object of the kind.
func (c *call) whole() media { return media{protobuf: c.media.protobuf} }

// deleted returns the response to a deletion.
func (c *call) deleted(uid string) metav1.Status {
	return metav1.Status{Status: metav1.StatusSuccess, Details: &metav1.StatusDetails{
		Name: c.at.name, Group: c.at.gvr.Group, Kind: c.at.gvr.Resource, UID: types.UID(uid),
	}}
}

// perform carries out a write. It returns the written object, or nil if it was removed.
func (c *call) perform(w *writing) (*object, error) {
	defer c.s.lock()()
	res := c.s.resource(c.at.gvr)
	if c.r.Method == http.MethodPost {
		return c.create(res, w)
	}
	old := res.objects[c.at.key]
	if old == nil {
		return nil, apierrors.NewNotFound(c.at.gvr.GroupResource(), c.at.name)
	}
	if w.uid = old.uid; c.r.Method == http.MethodDelete {
		return c.remove(res, old, w)
	}
	return c.update(res, old, w)
}

// create stores a new object; s.mu is held.
func (c *call) create(res *resource, w *writing) (*object, error) {
	m := metaOf(w.fields)
	if rv, _ := m["resourceVersion"].(string); rv != "" && rv != "0" {
		return nil, refusal(http.StatusInternalServerError, metav1.StatusReasonUnknown, "resourceVersion should not be set on objects to be created")
	}
	k := key{c.at.namespace, text(m, "name")}
	if base := text(m, "generateName"); k.name == "" && base != "" {
		k.name = c.s.freeName(res, k.namespace, base)
	}
	if k.name == "" {
		return nil, c.invalid("", field.Required(field.NewPath("metadata", "name"), "name or generateName is required"))
	}
	if res.objects[k] != nil {
		return nil, apierrors.NewAlreadyExists(c.at.gvr.GroupResource(), k.name)
	}
	for _, name := range []string{"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation", "managedFields"} {
		delete(m, name)
	}
	m["name"], m["creationTimestamp"] = k.name, timestamp()
	if k.namespace != "" {
		m["namespace"] = k.namespace
	}
	if c.kind.generations() {
		m["generation"] = int64(1)
	}
	if c.kind.status {
		delete(w.fields, "status")
	}
	return c.store(res, k, c.s.uid(nil), w)
}

// update replaces an object, or its status; s.mu is held.
func (c *call) update(res *resource, old *object, w *writing) (*object, error) {
	was, err := c.normal(plain(old.asFields(c.kind)))
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	now := w.fields
	if w.patch != nil {
		if now, err = w.patch(was); err != nil {
			return nil, err
		}
	}
	if now, err = c.normal(now); err != nil {
		return nil, err
	}
	if err := c.matches(now, w.patch != nil, old); err != nil {
		return nil, err
	}
	if now, err = c.merge(was, now); err != nil {
		return nil, err
	}
	if reflect.DeepEqual(was, now) {
		return old, nil // nothing is written, and the version stays
	}
	w.fields = now
	m := metaOf(now)
	if c.kind.generations() && !reflect.DeepEqual(c.desired(was), c.desired(now)) {
		m["generation"] = integer(m["generation"]) + 1
	}
	if m["deletionTimestamp"] != nil && len(finalizers(m)) == 0 { // removed at once, since a version without finalizers is never visible
		w.deletes = true
	}
	return c.store(res, old.key, old.uid, w)
}

// matches refuses an update of another object, or of an older version.
func (c *call) matches(now map[string]any, patch bool, old *object) error {
	m, gr := metaOf(now), c.at.gvr.GroupResource()
	if name := text(m, "name"); name != old.name {
		return apierrors.NewBadRequest("the name of the object (" + name + ") does not match the name on the URL (" + old.name + ")")
	}
	if uid := text(m, "uid"); uid != "" && uid != old.uid {
		return apierrors.NewConflict(gr, old.name, mismatch("UID", uid, old.uid))
	}
	switch rv := text(m, "resourceVersion"); {
	case rv != "" && rv != "0":
		if rv != formatVersion(old.rv) {
			return apierrors.NewConflict(gr, old.name, errModified)
		}
	case !patch && c.kind.new == nil: // most built-in kinds can be updated without a version
		return c.invalid(old.name, field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update"))
	}
	return nil
}

// merge returns the old object with the fields that an update may change.
func (c *call) merge(was, now map[string]any) (map[string]any, error) {
	if c.at.sub == "status" {
		merged := maps.Clone(was)
		copyField(merged, now, "status")
		merged["metadata"] = maps.Clone(metaOf(was))
		return merged, nil
	}
	if c.kind.status {
		copyField(now, was, "status")
	}
	before, m := metaOf(was), metaOf(now)
	for _, name := range []string{
		"name", "namespace", "uid", "resourceVersion", "creationTimestamp", "generation",
		"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink",
	} {
		copyField(m, before, name)
	}
	if before["deletionTimestamp"] == nil {
		return now, nil
	}
	for _, f := range finalizers(m) {
		if !slices.Contains(finalizers(before), f) {
			return nil, c.invalid(c.at.name, field.Forbidden(field.NewPath("metadata", "finalizers"), "no new finalizers can be added if the object is being deleted, found new finalizers "+f))
		}
	}
	return now, nil
}

// remove deletes an object, or marks it for deletion if it has finalizers; s.mu is held.
func (c *call) remove(res *resource, old *object, w *writing) (*object, error) {
	if p := w.preconditions; p != nil {
		gr := c.at.gvr.GroupResource()
		if p.UID != nil && string(*p.UID) != old.uid {
			return nil, apierrors.NewConflict(gr, old.name, mismatch("UID", string(*p.UID), old.uid))
		}
		if rv := formatVersion(old.rv); p.ResourceVersion != nil && *p.ResourceVersion != rv {
			return nil, apierrors.NewConflict(gr, old.name, mismatch("ResourceVersion", *p.ResourceVersion, rv))
		}
	}
	w.fields = plain(old.asFields(c.kind))
	m := metaOf(w.fields)
	switch {
	case len(finalizers(m)) > 0 && m["deletionTimestamp"] != nil:
		return old, nil
	case len(finalizers(m)) > 0:
		m["deletionTimestamp"], m["deletionGracePeriodSeconds"] = timestamp(), int64(0)
		if n := integer(m["generation"]); n > 0 {
			m["generation"] = n + 1
		}
		return c.store(res, old.key, old.uid, w)
	case !w.dryRun:
		c.s.rv++
		c.s.write(res, old.key, nil)
	}
	return nil, nil
}

// store stores the result of a request, unless it is a dry run; s.mu is held.
func (c *call) store(res *resource, k key, uid string, w *writing) (*object, error) {
	rv := c.s.rv + 1
	if w.dryRun {
		rv = 0
		if old := res.objects[k]; old != nil {
			rv = old.rv
		}
	}
	o, err := c.object(k, rv, uid, w.fields)
	if err != nil || w.dryRun {
		return o, err
	}
	c.s.rv = rv
	if w.deletes {
		c.s.write(res, k, nil)
	} else {
		o = c.s.write(res, k, o)
	}
	return o, nil
}

// generations reports whether the server maintains generations for the kind, as for custom resources, pods, and
// most kinds with a spec outside the core group.
func (k *kind) generations() bool {
	if k.new == nil {
		return true
	}
	spec := reflect.Indirect(reflect.ValueOf(k.new())).FieldByName("Spec").IsValid()
	core := []string{"pods", "replicationcontrollers"}
	return spec && (k.gvr.Group != "" || slices.Contains(core, k.gvr.Resource))
}

// desired returns the part of an object whose changes its generation counts.
func (c *call) desired(fields map[string]any) map[string]any {
	fields = maps.Clone(fields)
	delete(fields, "metadata")
	if c.kind.status {
		delete(fields, "status")
	}
	return fields
}

func (c *call) invalid(name string, err *field.Error) error {
	return apierrors.NewInvalid(schema.GroupKind{Group: c.at.gvr.Group, Kind: c.kind.name}, name, field.ErrorList{err})
}

// freeName returns an unused name with a prefix.
func (s *Server) freeName(res *resource, namespace, base string) string {
	const letters = "bcdfghjklmnpqrstvwxz2456789" // from k8s.io/apimachinery/pkg/util/rand
	for {
		s.names++
		suffix := make([]byte, 5)
		for i, n := len(suffix)-1, s.names; i >= 0; i, n = i-1, n/len(letters) {
			suffix[i] = letters[n%len(letters)]
		}
		if k := (key{namespace, base + string(suffix)}); res.objects[k] == nil {
			return k.name
		}
	}
}

// copyField copies a field, or its absence, from one map to another.
func copyField(to, from map[string]any, name string) {
	if v, ok := from[name]; ok {
		to[name] = v
	} else {
		delete(to, name)
	}
}

func text(m map[string]any, name string) string {
	s, _ := m[name].(string)
	return s
}

func integer(v any) int64 {
	n, _ := v.(int64)
	return n
}

func finalizers(m map[string]any) (names []string) {
	list, _ := m["finalizers"].([]any)
	for _, f := range list {
		if name, ok := f.(string); ok {
			names = append(names, name)
		}
	}
	return names
}
