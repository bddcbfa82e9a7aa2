package event

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

const referenceHead = `# Events

<!-- Generated from the types of package event: go test ./event -update -->

An event describes one change. ` + "`-o json`" + ` prints events, and sinks receive them. Each event is a JSON object in the form
of [CloudEvents 1.0](https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md).
[schema.json](../event/schema.json) is its JSON Schema. The Go package [event](../event/event.go) has the same types, and a
helper that drops repeated events.

Delivery is at least once. The events of each object are delivered in order, except through standard SQS
queues, standard SNS topics, and Pub/Sub with ` + "`unordered`" + `. The same change always has the same ` + "`id`" + `. Times are in
UTC, as RFC 3339 with milliseconds; the ` + "`time`" + ` of a manager is in whole seconds. So is the time of a creation:
it may be up to a second before that of the deletion of the previous object of that name, although the creation came later.
Later versions may add fields and operations of changes, so a consumer should ignore what it does not know.

If the daemon exports [traces](operations.md#traces), a consumer can join the trace of an event: the trace ID is
the 16 bytes that ` + "`id`" + ` encodes in base32. Events have no field for it.

## Ids

Two recorders of one cluster give the same change the same ` + "`id`" + `, although they began at different times and had outages of
their own. An id depends on the cluster's name, the kind, the object's UID and the following:

| change | also depends on |
|---|---|
| ` + "`snapshot`, `created`, `updated`, `entered`" + ` | the version of the object: each version has one id, however it was found |
| ` + "`deleted`" + ` | nothing else: an object is deleted once, and the version is unknown if the deletion was missed |
| ` + "`left`" + ` | the version; if the recorder missed it, the last known one |
| ` + "`converted`" + ` | the version and the form |
| any of these | the epoch, from the second on |

What only one recorder knows is marked: a change that is the sum of several has ` + "`observed.net`" + `, and a ` + "`gap`" + ` says what is missing.
Of two events with the same id, the one without ` + "`observed.net`" + ` has the nearer predecessor. An object that was gone may be back in
a version that was seen before, for example after an aggregated API server was away. The repeated state and the next deletion
are then numbered, so that a consumer that remembers ids does not take them for repetitions.

The epoch counts the histories of the server's storage. After a restored backup, the same versions occur again as other
changes. Only a proof begins an epoch: a version that has gone backwards, a recent object that is missing without having been
deleted, another cluster's identity. An uncertainty, such as a state that could not be verified after a restart, leads to a list and a
gap within the epoch. A proof that one of Kubernetes' own kinds finds counts for all kinds of the cluster. A proof by
another API group, which may have a storage of its own, counts for that group only, and a proof by Events for Events. The new
epoch is one more than the highest that the recorder has used. The limits of this:

- A recorder can only count replacements that it can prove. While it is down, a backup that is newer than all it has seen, or
  two backups one after the other, leave no trace. Nor do changes of a kind that it may not ` + "`get`" + `, once the new history has
  overtaken the old one. Recorders then disagree on the epoch from there on, and a change may be delivered under two ids. The
  same holds for a recorder with a new journal.
- A change that was recorded after the replacement, but before the first proof, has the old epoch.
- If only custom resources prove that the cluster was restored, other groups keep their epoch. An aggregated API server
  of a group in ` + "`k8s.io`" + ` is taken for a part of Kubernetes.

## Patches

With ` + "`include: [patch]`" + `, an update has a JSON Patch (RFC 6902). A consumer that takes the whole object from the event
` + "`created`" + `, ` + "`entered`" + ` or ` + "`snapshot`" + `, and then applies every patch, has the object as the API server showed it, except that
values are redacted and ` + "`managedFields`" + ` are missing. Quiet changes are not delivered: the next patch includes what they
changed.

A patch begins with a ` + "`test`" + ` of ` + "`metadata.resourceVersion`" + `. It fails if the consumer has another version, and a patch that fails
changes nothing. An event that is delivered again fails, too, so a consumer must drop repeated ids first. Otherwise, it missed
something and needs the whole object, from the API server or, with ` + "`include: [after, patch]`" + `, from the event:

- The sink's ` + "`where`" + ` selects some changes of an object and not others, by their operation, severity, fields or content. A
  ` + "`where`" + ` that reads only ` + "`resource`" + ` and ` + "`cluster`" + `, apart from ` + "`resource.resourceVersion`" + ` and ` + "`resource.owner`" + `, selects all
  changes of an object or none.
- The consumer has no object to begin with: the object existed before the sink did, and the sink has no ` + "`snapshots: true`" + `.
- The event before was truncated, because of ` + "`maxBytes`" + ` or a purge, and has no patch.
- The event before became a dead letter or was skipped, or retention removed it before the sink was ready.
- The quiet rules changed before the sink received what was recorded under the old ones.

## An example

`

// TestReference compares docs/event.md with the types, their comments and testdata/full.json.
func TestReference(t *testing.T) {
	g := generator{comments: map[string]string{}, enums: map[string][]any{}, defs: map[string]any{}}
	g.readSource(t, "event.go")
	example, err := json.MarshalIndent(full(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	b.WriteString(referenceHead)
	fmt.Fprintf(&b, "This event has every field set; real events have fewer fields.\n\n```json\n%s\n```\n", example)
	fmt.Fprintf(&b, "\n## Operations\n\n%s\n\n## Severities\n\n%s\n", g.comments["Op values"], g.comments["Severity values"])
	g.tables(&b, reflect.TypeFor[Event](), map[string]bool{})

	g.readSource(t, "reconstructed.go")
	done := map[string]bool{"Resource": true, "Change": true}
	fmt.Fprintf(&b, "\n## Reconstructed events\n\nReconstructed events are not in schema.json. They are never recorded in the journal.\n\n## Facts\n\n%s\n", g.comments["Fact values"])
	g.tables(&b, reflect.TypeFor[Reconstructed](), done)
	golden(t, "../docs/event.md", b.Bytes())
}

// tables writes a table of a struct's fields, and then those of the structs within.
func (g *generator) tables(b *bytes.Buffer, typ reflect.Type, done map[string]bool) {
	if done[typ.Name()] {
		return
	}
	done[typ.Name()] = true
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n| field | type | |\n|---|---|---|\n", typ.Name(), g.comments[typ.Name()])
	var below []reflect.Type
	for f := range fields(typ) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		kind, of := g.typeName(f.Type)
		if of != nil {
			below = append(below, of)
		}
		if options == "omitempty" {
			kind += ", optional"
		}
		text := g.comments[typ.Name()+"."+f.Name]
		if rest, ok := strings.CutPrefix(text, f.Name+" "); ok {
			text = "`" + name + "` " + rest // the JSON name instead of the Go name
		}
		values := strings.FieldsFunc(f.Tag.Get("enum"), func(r rune) bool { return r == ',' })
		if len(values) == 0 && f.Type.Kind() == reflect.String {
			for _, v := range g.enums[f.Type.Name()] {
				values = append(values, v.(string))
			}
		}
		if len(values) > 0 {
			text += " One of `" + strings.Join(values, "`, `") + "`."
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", name, kind, strings.ReplaceAll(text, "|", `\|`))
	}
	for _, t := range slices.Compact(below) {
		g.tables(b, t, done)
	}
}

// typeName is the JSON name of a type, and the struct that it holds, if any.
func (g *generator) typeName(typ reflect.Type) (string, reflect.Type) {
	switch typ.Kind() {
	case reflect.Pointer:
		return g.typeName(typ.Elem())
	case reflect.Slice:
		name, of := g.typeName(typ.Elem())
		return "array of " + name, of
	case reflect.Map:
		return "object", nil
	case reflect.Interface:
		return "any", nil
	case reflect.Bool:
		return "boolean", nil
	case reflect.Int64:
		return "integer", nil
	case reflect.Struct:
		if typ == reflect.TypeFor[time.Time]() {
			return "time", nil
		}
		return fmt.Sprintf("[%s](#%s)", typ.Name(), strings.ToLower(typ.Name())), typ
	}
	return "string", nil
}
