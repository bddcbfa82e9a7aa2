package compare

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/protobuf/proto"

	"github.com/tattler-dev/tattler/internal/cli"
	sinks "github.com/tattler-dev/tattler/internal/sink/kinds"
)

// actAsTattler makes this program act as tattler.
const actAsTattler = "COMPARE_TEST_ACTS_AS_TATTLER"

func TestMain(m *testing.M) {
	if os.Getenv(actAsTattler) != "" {
		os.Exit(cli.Main(sinks.Tattler()))
	}
	os.Exit(m.Run())
}

// TestRun: a short run on a real API server finds no fault in Tattler, and finds the canary where a peer sends it.
func TestRun(t *testing.T) {
	t.Setenv(actAsTattler, "1")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	plan := Plan{Calm: 2 * time.Second, Down: 2 * time.Second, Failing: 2 * time.Second, Settle: 20 * time.Second, PerSecond: 20}
	peer, err := Tattler(t.Context(), self)
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	results, err := Run(t.Context(), plan, []Peer{peer}, 1, t.TempDir(), &said)
	if err != nil {
		t.Fatal(err)
	}
	r := results[0]
	if r.Changes < 150 || r.Deletions == 0 || r.Refused == 0 || r.CPU == 0 || r.Peak == 0 {
		t.Errorf("the run was too easy: %+v", r)
	}
	if r.Lost+r.Repeats+r.Disorder+r.Invented+r.Leaks+r.Files > 0 {
		t.Errorf("%+v", r)
		Explain(&said, results)
	}
	if t.Failed() {
		t.Log(said.String())
	}
	if err := Table(io.Discard, [][]Result{results}); err != nil {
		t.Error(err)
	}
}

// TestReceiver: what is sent arrives, a canary is found, and a failing receiver takes nothing.
func TestReceiver(t *testing.T) {
	r, err := Listen(canaries...)
	if err != nil {
		t.Fatal(err)
	}
	text := func(s string) *commonpb.AnyValue {
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: s}}
	}
	tree := func(all ...*commonpb.KeyValue) *commonpb.AnyValue {
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_KvlistValue{KvlistValue: &commonpb.KeyValueList{Values: all}}}
	}
	send := func(value string) int {
		body, err := proto.Marshal(&collogspb.ExportLogsServiceRequest{ResourceLogs: []*logspb.ResourceLogs{{ScopeLogs: []*logspb.ScopeLogs{{
			LogRecords: []*logspb.LogRecord{{
				Attributes: []*commonpb.KeyValue{{Key: "k8s.resource.name", Value: text("secrets")}, {Key: "tattler.id", Value: text("i")}},
				Body: tree(&commonpb.KeyValue{Key: "type", Value: text("ADDED")}, &commonpb.KeyValue{Key: "object", Value: tree(
					&commonpb.KeyValue{Key: "metadata", Value: tree(
						&commonpb.KeyValue{Key: "uid", Value: text("u")}, &commonpb.KeyValue{Key: "name", Value: text("n")},
						&commonpb.KeyValue{Key: "resourceVersion", Value: text("7")})},
					&commonpb.KeyValue{Key: "data", Value: text(value)})}),
			}},
		}}}}})
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.Post(r.URL+"/v1/logs", "application/x-protobuf", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode
	}
	if status := send("hidden"); status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
	arrived, leaks := r.Received()
	if len(arrived) != 1 || leaks != 0 || arrived[0].UID != "u" || arrived[0].Version != 7 || arrived[0].Kind != "secrets" || arrived[0].ID != "i" {
		t.Errorf("%+v, %d leaks", arrived, leaks)
	}
	r.Fail(true)
	if status := send(canaries[1]); status != http.StatusServiceUnavailable {
		t.Errorf("status %d from a failing receiver", status)
	}
	if arrived, leaks := r.Received(); len(arrived) != 1 || leaks != 1 || r.Refused() != 1 {
		t.Errorf("%d arrived, %d leaks, %d refused", len(arrived), leaks, r.Refused())
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
