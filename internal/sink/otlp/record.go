package otlp

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/sink"
)

// record makes the log record of a message. Its attributes are those of the k8sobjects receiver (k8s.resource.name,
// event.domain, event.name), those of the semantic conventions for the kind, and our own.
func record(m sink.Message, body Body) (*logspb.LogRecord, error) {
	d := &m.Event.Data
	r := &logspb.LogRecord{
		TimeUnixNano:         nanoseconds(m.Event.Time),
		ObservedTimeUnixNano: nanoseconds(d.Observed.At),
		SeverityNumber:       logspb.SeverityNumber_SEVERITY_NUMBER_INFO,
		SeverityText:         "INFO",
		Attributes:           attributes(m),
	}
	if d.Op == event.Gap || d.Absence != nil && d.Absence.Incomplete > 0 { // something was missed
		r.SeverityNumber, r.SeverityText = logspb.SeverityNumber_SEVERITY_NUMBER_WARN, "WARN"
	}
	if body == BodyObject {
		r.Body = anyValue(map[string]any{"type": watchType(d.Op), "object": object(d)})
		return r, nil
	}
	r.EventName = m.Event.Type
	var err error
	r.Body, err = decode(m.Body)
	return r, err
}

func nanoseconds(t time.Time) uint64 {
	if t.Unix() <= 0 { // unknown
		return 0
	}
	return uint64(t.UnixNano())
}

func attributes(m sink.Message) []*commonpb.KeyValue {
	d := &m.Event.Data
	r := &d.Resource
	var out []*commonpb.KeyValue
	add := func(key, value string) {
		if value != "" {
			out = append(out, &commonpb.KeyValue{Key: key, Value: text(value)})
		}
	}
	add("k8s.resource.name", r.Resource)
	if r.Name != "" {
		add("event.domain", "k8s")
		add("event.name", r.Name)
	}
	if !isNamespace(r) {
		add("k8s.namespace.name", r.Namespace)
	}
	if prefix := conventions[r.Group+"/"+r.Resource]; prefix != "" {
		add(prefix+".name", r.Name)
		if !slices.Contains(withoutUID, prefix) {
			add(prefix+".uid", r.UID)
		}
	}
	add("tattler.id", m.ID)
	add("tattler.op", string(d.Op))
	add("tattler.subject", m.Event.Subject)
	if d.Truncated {
		out = append(out, &commonpb.KeyValue{Key: "tattler.truncated", Value: anyValue(true)})
	}
	add("tattler.filter_error", d.FilterError)
	return out
}

// conventions maps a group and resource to the prefix of its attributes in OpenTelemetry's semantic conventions.
var conventions = map[string]string{
	"/namespaces":                          "k8s.namespace",
	"/nodes":                               "k8s.node",
	"/persistentvolumeclaims":              "k8s.persistentvolumeclaim",
	"/persistentvolumes":                   "k8s.persistentvolume",
	"/pods":                                "k8s.pod",
	"/replicationcontrollers":              "k8s.replicationcontroller",
	"/resourcequotas":                      "k8s.resourcequota",
	"/services":                            "k8s.service",
	"apps/daemonsets":                      "k8s.daemonset",
	"apps/deployments":                     "k8s.deployment",
	"apps/replicasets":                     "k8s.replicaset",
	"apps/statefulsets":                    "k8s.statefulset",
	"autoscaling/horizontalpodautoscalers": "k8s.hpa",
	"batch/cronjobs":                       "k8s.cronjob",
	"batch/jobs":                           "k8s.job",
	"storage.k8s.io/storageclasses":        "k8s.storageclass",
}

// withoutUID lists the prefixes that have a name attribute in the conventions, but no UID.
var withoutUID = []string{"k8s.namespace", "k8s.storageclass"}

func isNamespace(r *event.Resource) bool { return r.Group == "" && r.Resource == "namespaces" }

// watchType returns the type of the watch event for an operation. GAP and ABSENT are our own additions.
func watchType(op event.Op) string {
	switch op {
	case event.Updated, event.Converted:
		return "MODIFIED"
	case event.Deleted, event.Left:
		return "DELETED"
	case event.Gap:
		return "GAP"
	case event.Absent:
		return "ABSENT"
	}
	return "ADDED"
}

// object returns the full object if the event has it, else its identity.
func object(d *event.Data) map[string]any {
	switch {
	case d.After != nil:
		return d.After
	case d.Before != nil && !d.Op.Differs():
		return d.Before
	}
	r := &d.Resource
	apiVersion := r.Version
	if r.Group != "" {
		apiVersion = r.Group + "/" + r.Version
	}
	meta := map[string]any{}
	for key, value := range map[string]string{"name": r.Name, "namespace": r.Namespace, "uid": r.UID, "resourceVersion": r.ResourceVersion} {
		if value != "" {
			meta[key] = value
		}
	}
	return map[string]any{"apiVersion": apiVersion, "kind": r.Kind, "metadata": meta}
}

// place determines the resource of a record.
type place struct{ source, namespace string }

func placeOf(e *event.Event) place {
	p := place{e.Source, e.Data.Resource.Namespace}
	if isNamespace(&e.Data.Resource) {
		p.namespace = e.Data.Resource.Name
	}
	return p
}

// resource returns the attributes of a place: those of the k8sobjects receiver, service.name, and extra ones.
func (p place) resource(extra map[string]string) []*commonpb.KeyValue {
	all := map[string]string{"service.name": "tattler"}
	if cluster, err := url.PathUnescape(strings.TrimPrefix(p.source, "/clusters/")); err == nil && cluster != "" {
		all["k8s.cluster.name"] = cluster
	}
	if p.namespace != "" {
		all["k8s.namespace.name"] = p.namespace
	}
	maps.Copy(all, extra)
	out := make([]*commonpb.KeyValue, 0, len(all))
	for _, key := range slices.Sorted(maps.Keys(all)) {
		out = append(out, &commonpb.KeyValue{Key: valid(key), Value: text(all[key])})
	}
	return out
}
