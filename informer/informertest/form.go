package informertest

import (
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ChangeForm changes the form in which a kind's objects are served, without a write, like a new default in the
// CRD, another conversion, or an upgrade of the API server. From then on lists, gets and watches, including
// their history, show each object as changed by to, at its existing version, and the hash of the kind's group
// and version in /openapi/v3 changes. Open watches stay open and send nothing.
//
// to receives a copy of the object's fields. It must not touch the metadata, and must be idempotent, since
// clients write back what they read.
func (s *Server) ChangeForm(gvr schema.GroupVersionResource, to func(object map[string]any)) {
	defer s.lock()()
	res := s.resource(gvr)
	res.forms = append(res.forms, to)
	done := map[*object]*object{nil: nil}
	formed := func(o *object) *object {
		if done[o] == nil && o != nil {
			done[o] = res.formed(o)
		}
		return done[o]
	}
	for k, o := range res.objects {
		res.objects[k] = formed(o)
	}
	res.sorted = nil
	for i, c := range res.log {
		res.log[i] = change{c.rv, formed(c.old), formed(c.new)}
	}
}

// formed returns an object in its current form: itself, or a copy.
func (res *resource) formed(o *object) *object {
	if o == nil || o.form == len(res.forms) {
		return o
	}
	fields := plain(o.asFields(res.kind))
	for _, change := range res.forms[o.form:] {
		change(fields)
	}
	now := &object{key: o.key, rv: o.rv, uid: o.uid, fields: fields}
	if o.fields == nil { // stored as its Go type, which stays
		now = newTyped(now.typed(res.kind), o.key, o.rv, o.uid)
	}
	now.form = len(res.forms)
	return now
}

// formedAll applies formed to shared objects, which are not changed.
func (res *resource) formedAll(objects []*object) []*object {
	stale := func(o *object) bool { return o.form < len(res.forms) }
	if !slices.ContainsFunc(objects, stale) {
		return objects
	}
	objects = slices.Clone(objects)
	for i, o := range objects {
		objects[i] = res.formed(o)
	}
	return objects
}

// openAPI answers with the index of OpenAPI documents, or with a minimal document that names the kinds.
func (c *call) openAPI() {
	var answer any
	c.s.mu.Lock()
	if c.r.URL.Path == openAPIPath {
		answer = map[string]any{"paths": c.s.openAPIPaths()}
	} else if gv, ok := c.s.openAPIGroups()[strings.TrimPrefix(c.r.URL.Path, openAPIPath+"/")]; ok {
		answer = gv.document()
	}
	c.s.mu.Unlock()
	if answer == nil {
		http.NotFound(c.w, c.r)
		return
	}
	c.answer(func(w io.Writer) error {
		_, err := w.Write(encodeJSON(answer))
		return err
	})
}

// openAPIPath is the path of the index and the prefix of the documents' paths.
const openAPIPath = "/openapi/v3"

// openAPIPaths returns the entries of the index; s.mu is held.
func (s *Server) openAPIPaths() map[string]any {
	paths := map[string]any{}
	for name, gv := range s.openAPIGroups() {
		paths[name] = map[string]any{"serverRelativeURL": openAPIPath + "/" + name + "?hash=" + gv.hash()}
	}
	return paths
}

// groupVersion is the kinds of one OpenAPI document.
type groupVersion []*resource

// openAPIGroups returns the served kinds by the name of their document; s.mu is held.
func (s *Server) openAPIGroups() map[string]groupVersion {
	groups := map[string]groupVersion{}
	for gvr, res := range s.resources {
		if !res.served {
			continue
		}
		name := "apis/" + gvr.Group + "/" + gvr.Version
		if gvr.Group == "" {
			name = "api/" + gvr.Version
		}
		groups[name] = append(groups[name], res)
	}
	for _, gv := range groups {
		slices.SortFunc(gv, func(a, b *resource) int { return strings.Compare(a.kind.gvr.Resource, b.kind.gvr.Resource) })
	}
	return groups
}

// hash covers everything that determines the form in which the kinds are served.
func (gv groupVersion) hash() string {
	text := ""
	for _, res := range gv {
		text += fmt.Sprintf("%s %s %d\n", res.kind.gvr, res.kind.name, len(res.forms))
	}
	sum := sha512.Sum512([]byte(text))
	return strings.ToUpper(hex.EncodeToString(sum[:]))
}

func (gv groupVersion) document() map[string]any {
	schemas := map[string]any{}
	for _, res := range gv {
		gvr := res.kind.gvr
		schemas[gvr.Group+"."+gvr.Version+"."+res.kind.name] = map[string]any{
			"type":                            "object",
			"x-kubernetes-group-version-kind": []any{map[string]any{"group": gvr.Group, "version": gvr.Version, "kind": res.kind.name}},
		}
	}
	return map[string]any{
		"openapi":    "3.0.0",
		"info":       map[string]any{"title": "informertest", "version": "unversioned"},
		"paths":      map[string]any{},
		"components": map[string]any{"schemas": schemas},
	}
}
