package event

import (
	"encoding/hex"
	"fmt"
)

// TraceID returns the ID of the OpenTelemetry trace of an event: the 16 bytes that Event.ID encodes in base32. So
// everything that has the event can join its trace, without a field for it. The daemon exports traces if its configuration
// has the key traces, and only as many as that says.
func TraceID(id string) (trace [16]byte, err error) {
	b, err := lower.DecodeString(id)
	if err != nil || len(b) != len(trace) {
		return trace, fmt.Errorf("%q is not the id of an event: want 26 characters, each from a to z or from 2 to 7", id)
	}
	return [16]byte(b), nil
}

// SpanID returns the ID of the root span of an event's trace: the first 8 bytes of the trace ID.
func SpanID(trace [16]byte) [8]byte { return [8]byte(trace[:8]) }

// TraceParent returns the traceparent header, as W3C Trace Context defines it, for spans that continue the trace of an event.
// Its flags say that the trace is sampled.
func TraceParent(id string) (string, error) {
	trace, err := TraceID(id)
	if err != nil {
		return "", err
	}
	span := SpanID(trace)
	return "00-" + hex.EncodeToString(trace[:]) + "-" + hex.EncodeToString(span[:]) + "-01", nil
}
