package compare

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/proto"
)

// Receiver takes OTLP log records over HTTP, as a collector or a backend would.
type Receiver struct {
	URL    string
	canary [][]byte

	server *http.Server
	served chan error

	mu       sync.Mutex
	failing  bool
	refused  int // requests, while failing
	arrivals []Arrival
	leaks    int // requests with a canary
	err      error
}

// Listen starts a receiver on a free port of 127.0.0.1. It counts requests that contain one of the canaries.
func Listen(canary ...string) (*Receiver, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	r := &Receiver{URL: "http://" + l.Addr().String(), served: make(chan error, 1)}
	for _, c := range canary {
		r.canary = append(r.canary, []byte(c))
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/logs", r.take)
	r.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute}
	go func() { r.served <- r.server.Serve(l) }()
	return r, nil
}

// Fail makes the receiver answer 503 from now on, or answer again.
func (r *Receiver) Fail(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failing = on
}

func (r *Receiver) take(w http.ResponseWriter, req *http.Request) {
	now := time.Now()
	body, err := content(req)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.canary {
		if bytes.Contains(body, c) {
			r.leaks++
			break
		}
	}
	if r.failing {
		r.refused++
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	var arrived []Arrival
	if err == nil {
		arrived, err = parse(body, now)
	}
	if err != nil {
		r.err = errors.Join(r.err, err)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.arrivals = append(r.arrivals, arrived...)
	answer, _ := proto.Marshal(&collogspb.ExportLogsServiceResponse{})
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(answer)
}

func content(req *http.Request) ([]byte, error) {
	var body io.Reader = req.Body
	if req.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(req.Body)
		if err != nil {
			return nil, fmt.Errorf("read request: %w", err)
		}
		body = z
	}
	b, err := io.ReadAll(body)
	if err != nil {
		return nil, fmt.Errorf("read request: %w", err)
	}
	return b, nil
}

// parse reads records whose body is a map of type and object, which the k8sobjects receiver writes, and Tattler with
// "body: object".
func parse(body []byte, at time.Time) (all []Arrival, err error) {
	var req collogspb.ExportLogsServiceRequest
	if err := proto.Unmarshal(body, &req); err != nil {
		return nil, fmt.Errorf("decode request: %w", err)
	}
	for _, resource := range req.GetResourceLogs() {
		for _, scope := range resource.GetScopeLogs() {
			for _, record := range scope.GetLogRecords() {
				attributes := values(record.GetAttributes())
				fields := values(record.GetBody().GetKvlistValue().GetValues())
				text, err := json.Marshal(plain(fields["object"]))
				if err != nil {
					return nil, fmt.Errorf("encode object: %w", err)
				}
				var o object
				if err := json.Unmarshal(text, &o); err != nil {
					return nil, fmt.Errorf("decode object: %w", err)
				}
				typ := fields["type"].GetStringValue()
				if o.Metadata.UID == "" {
					continue // a notice without an object, such as an absence
				}
				c, err := o.change(attributes["k8s.resource.name"].GetStringValue(), typ, at)
				if err != nil {
					return nil, err
				}
				all = append(all, Arrival{Change: c, ID: attributes["tattler.id"].GetStringValue()})
			}
		}
	}
	return all, nil
}

func values(all []*commonpb.KeyValue) map[string]*commonpb.AnyValue {
	m := make(map[string]*commonpb.AnyValue, len(all))
	for _, kv := range all {
		m[kv.GetKey()] = kv.GetValue()
	}
	return m
}

// plain converts a value of OTLP to one of encoding/json.
func plain(v *commonpb.AnyValue) any {
	switch v := v.GetValue().(type) {
	case *commonpb.AnyValue_StringValue:
		return v.StringValue
	case *commonpb.AnyValue_BoolValue:
		return v.BoolValue
	case *commonpb.AnyValue_IntValue:
		return v.IntValue
	case *commonpb.AnyValue_DoubleValue:
		return v.DoubleValue
	case *commonpb.AnyValue_BytesValue:
		return v.BytesValue
	case *commonpb.AnyValue_ArrayValue:
		all := []any{}
		for _, e := range v.ArrayValue.GetValues() {
			all = append(all, plain(e))
		}
		return all
	case *commonpb.AnyValue_KvlistValue:
		m := map[string]any{}
		for _, kv := range v.KvlistValue.GetValues() {
			m[kv.GetKey()] = plain(kv.GetValue())
		}
		return m
	}
	return nil
}

// Received returns the records so far, in the order of arrival, and the number of requests with a canary.
func (r *Receiver) Received() (all []Arrival, leaks int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Arrival(nil), r.arrivals...), r.leaks
}

// Refused returns how many requests were answered with 503.
func (r *Receiver) Refused() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refused
}

// Close stops the receiver, and returns an error if a request could not be read.
func (r *Receiver) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := r.server.Shutdown(ctx)
	if served := <-r.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(err, r.err)
}
