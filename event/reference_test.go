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
UTC, as RFC 3339 with milliseconds; the ` + "`time`" + ` of a manager is in whole seconds. Later versions may add fields, so a consumer should ignore fields that it does not know.

If the daemon exports [traces](operations.md#traces), a consumer can join the trace of an event: the trace ID is
the 16 bytes that ` + "`id`" + ` encodes in base32. Events have no field for it.

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
