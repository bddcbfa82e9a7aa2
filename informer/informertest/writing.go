package informertest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// maxWrite is the size above which an API server refuses a request's body.
const maxWrite = 3 << 20

// writing is a parsed write request.
type writing struct {
	dryRun        bool
	fields        map[string]any                               // the object, normalized
	patch         func(map[string]any) (map[string]any, error) // returns the patched object; nil: not a patch
	preconditions *metav1.Preconditions                        // of a deletion
	deletes       bool                                         // the object is removed, like after its last finalizer
	uid           string                                       // of the previous object
}

// readWrite parses a write request.
func (c *call) readWrite() (*writing, error) {
	w := &writing{}
	query := c.r.URL.Query()
	if err := w.dry(query["dryRun"]); err != nil {
		return nil, err
	}
	var body []byte
	if c.r.Body != nil {
		var err error
		if body, err = io.ReadAll(io.LimitReader(c.r.Body, maxWrite+1)); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	if len(body) > maxWrite {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxWrite))
	}
	contentType := jsonType
	if t, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type")); err == nil { // the header may be missing
		contentType = t
	}
	var err error
	switch c.r.Method {
	case http.MethodPatch:
		w.patch, err = c.readPatch(types.PatchType(contentType), body)
	case http.MethodDelete:
		opts := metav1.DeleteOptions{}
		if len(body) > 0 {
			err = readOptions(contentType, body, &opts)
		} else if err := metav1.Convert_url_Values_To_v1_DeleteOptions(&query, &opts, nil); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		if err == nil {
			err = w.dry(opts.DryRun)
		}
		w.preconditions = opts.Preconditions
	default:
		w.fields, err = c.readObject(contentType, body)
	}
	return w, err
}

// dry records a dry run.
func (w *writing) dry(stages []string) error {
	for _, stage := range stages {
		if stage != metav1.DryRunAll {
			return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "WriteOptions"}, "",
				field.ErrorList{field.NotSupported(field.NewPath("dryRun"), stage, []string{metav1.DryRunAll})})
		}
		w.dryRun = true
	}
	return nil
}

// readOptions reads the body of a deletion.
func readOptions(contentType string, body []byte, into *metav1.DeleteOptions) error {
	err := error(unsupported(contentType, jsonType, protobufType))
	switch contentType {
	case jsonType:
		err = badBody(json.Unmarshal(body, into))
	case protobufType:
		_, err = fromProtobuf(body, into)
	}
	return err
}

// readObject reads the object of a create or update.
func (c *call) readObject(contentType string, body []byte) (map[string]any, error) {
	var fields map[string]any
	switch {
	case contentType == jsonType:
		if err := utiljson.Unmarshal(body, &fields); err != nil {
			return nil, badBody(err)
		}
	case contentType == protobufType && c.kind.new != nil:
		typed := c.kind.new().(message)
		gvk, err := fromProtobuf(body, typed)
		if err != nil {
			return nil, err
		}
		fields = plain(typed)
		fields["apiVersion"], fields["kind"] = gvk.GroupVersion().String(), gvk.Kind
	case c.kind.new != nil:
		return nil, unsupported(contentType, jsonType, protobufType)
	default:
		return nil, unsupported(contentType, jsonType)
	}
	fields, err := c.normal(fields)
	if err != nil {
		return nil, err
	}
	if ns := text(metaOf(fields), "namespace"); ns != "" && ns != c.at.namespace {
		return nil, apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	return fields, nil
}

// fromProtobuf reads an enveloped message.
func fromProtobuf(body []byte, into interface{ Unmarshal([]byte) error }) (schema.GroupVersionKind, error) {
	rest, ok := bytes.CutPrefix(body, []byte(magic))
	if !ok {
		return schema.GroupVersionKind{}, badBody(errors.New("provided data does not appear to be a protobuf message"))
	}
	var u runtime.Unknown
	err := u.Unmarshal(rest)
	if err == nil {
		err = into.Unmarshal(u.Raw)
	}
	return u.GroupVersionKind(), badBody(err)
}

// readPatch returns a function that applies a patch.
func (c *call) readPatch(how types.PatchType, patch []byte) (func(map[string]any) (map[string]any, error), error) {
	var apply func(doc []byte) ([]byte, error)
	switch {
	case how == types.ApplyYAMLPatchType || how == types.ApplyCBORPatchType:
		return nil, refusal(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
			"informertest does not implement server-side apply: send "+string(types.MergePatchType)+" or an update")
	case how == types.JSONPatchType:
		ops, err := jsonpatch.DecodePatch(patch)
		if err != nil {
			return nil, badBody(err)
		}
		apply = ops.Apply
	case how == types.MergePatchType:
		apply = func(doc []byte) ([]byte, error) { return jsonpatch.MergePatch(doc, patch) }
	case how == types.StrategicMergePatchType && c.kind.new != nil:
		apply = func(doc []byte) ([]byte, error) {
			return strategicpatch.StrategicMergePatch(doc, patch, c.kind.new())
		}
	default:
		return nil, unsupported(string(how), string(types.JSONPatchType), string(types.MergePatchType))
	}
	return func(was map[string]any) (now map[string]any, err error) {
		b, err := apply(encodeJSON(was))
		if err == nil {
			err = utiljson.Unmarshal(b, &now)
		}
		switch {
		case err == nil:
			return now, nil
		case errors.Is(err, jsonpatch.ErrBadJSONPatch) || how != types.JSONPatchType:
			return nil, badBody(err)
		}
		return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
	}, nil
}

// normal returns an object in the server's normal form: of the kind, and without fields unknown to its Go type.
func (c *call) normal(fields map[string]any) (map[string]any, error) {
	gvk := c.kind.gvr.GroupVersion().WithKind(c.kind.name)
	apiVersion, kind := text(fields, "apiVersion"), text(fields, "kind")
	if c.kind.new != nil && apiVersion == "" && kind == "" {
		apiVersion, kind = c.kind.apiVersion(), c.kind.name
	}
	if got := schema.FromAPIVersionAndKind(apiVersion, kind); got != gvk {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the object is a %q of %q, not a %q of %q", kind, apiVersion, c.kind.name, c.kind.apiVersion()))
	}
	if c.kind.new != nil {
		typed := c.kind.new()
		if err := kjson.UnmarshalCaseSensitivePreserveInts(encodeJSON(fields), typed); err != nil {
			return nil, badBody(err)
		}
		fields = plain(typed)
	} else {
		m := &metav1.ObjectMeta{}
		if err := kjson.UnmarshalCaseSensitivePreserveInts(encodeJSON(fields["metadata"]), m); err != nil {
			return nil, badBody(err)
		}
		fields = plain(fields)
		fields["metadata"] = plain(m)
	}
	fields["apiVersion"], fields["kind"] = c.kind.apiVersion(), c.kind.name
	if m := metaOf(fields); m == nil {
		fields["metadata"] = map[string]any{}
	} else if m["creationTimestamp"] == nil {
		delete(m, "creationTimestamp")
	}
	return fields, nil
}

// object makes the stored object.
func (c *call) object(k key, rv uint64, uid string, fields map[string]any) (*object, error) {
	if c.kind.new == nil {
		m := metaOf(fields)
		if m["uid"] = uid; rv > 0 {
			m["resourceVersion"] = formatVersion(rv)
		}
		return &object{key: k, rv: rv, uid: uid, fields: fields}, nil
	}
	typed := c.kind.new()
	if err := kjson.UnmarshalCaseSensitivePreserveInts(encodeJSON(fields), typed); err != nil {
		return nil, badBody(err)
	}
	return newTyped(typed, k, rv, uid), nil
}

// plain returns a value's JSON as a private map.
func plain(v any) (fields map[string]any) {
	if err := utiljson.Unmarshal(encodeJSON(v), &fields); err != nil {
		panic(fmt.Sprintf("informertest: encode a %T as a JSON object: %v", v, err))
	}
	return fields
}

func timestamp() string { return time.Now().UTC().Format(time.RFC3339) }

func badBody(err error) error {
	if err == nil {
		return nil
	}
	return apierrors.NewBadRequest(err.Error())
}

func unsupported(contentType string, accepted ...string) *apierrors.StatusError {
	return refusal(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
		"the body of the request was in an unknown format ("+contentType+") - accepted media types include: "+strings.Join(accepted, ", "))
}

func mismatch(what, want, have string) error {
	return fmt.Errorf("Precondition failed: %[1]s in precondition: %[2]s, %[1]s in object meta: %[3]s", what, want, have) //nolint:staticcheck // an API server's words
}
