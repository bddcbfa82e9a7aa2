package test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// fakeEC2 answers DescribeTags as EC2 does: XML, in pages, 200 instances at most. It throttles as long as it is to.
type fakeEC2 struct {
	url string

	mu       sync.Mutex
	tags     map[string]map[string]string // by instance
	throttle int                          // how many calls to refuse
	calls    int                          // first pages that it answered, each once however often it was asked for
	last     string                       // the SDK's id of the last of them: a retry has the same
	refused  int
	most     int      // how many instances a call has asked for
	problems []string // what EC2 would not take

	held    chan struct{} // if set, answers wait until it is closed
	waiting int           // how many do
}

func newFakeEC2(t *testing.T) *fakeEC2 {
	t.Helper()
	f := &fakeEC2{tags: map[string]map[string]string{}}
	s := httptest.NewServer(f)
	f.url = s.URL
	t.Cleanup(func() {
		s.Close()
		for _, p := range f.problems {
			t.Error(p)
		}
	})
	return f
}

// env has the SDK talk to the fake.
func (f *fakeEC2) env() []string {
	return []string{"AWS_ENDPOINT_URL_EC2=" + f.url, "AWS_REGION=eu-west-1", "AWS_ACCESS_KEY_ID=fake", "AWS_SECRET_ACCESS_KEY=fake"}
}

func (f *fakeEC2) set(instance string, tags map[string]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tags[instance] = tags
}

// count returns the counters, and resets them.
func (f *fakeEC2) count() (calls, refused, most int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	calls, refused, most = f.calls, f.refused, f.most
	f.calls, f.refused, f.most = 0, 0, 0
	return calls, refused, most
}

func (f *fakeEC2) refuse(calls int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.throttle = calls
}

// hold keeps the fake from answering until release is called.
func (f *fakeEC2) hold() (release func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	held := make(chan struct{})
	f.held, f.waiting = held, 0
	return sync.OnceFunc(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.held = nil
		close(held)
	})
}

// waits waits until the program waits for an answer that is held.
func (f *fakeEC2) waits(t *testing.T) {
	t.Helper()
	eventually(t, func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.waiting == 0 {
			return errors.New("EC2 was not asked")
		}
		return nil
	})
}

type item struct {
	ResourceID   string `xml:"resourceId"`
	ResourceType string `xml:"resourceType"`
	Key          string `xml:"key"`
	Value        string `xml:"value"`
}

type response struct {
	XMLName   xml.Name `xml:"http://ec2.amazonaws.com/doc/2016-11-15/ DescribeTagsResponse"`
	RequestID string   `xml:"requestId"`
	Tags      []item   `xml:"tagSet>item"`
	Next      string   `xml:"nextToken,omitempty"`
}

const page = 100

func (f *fakeEC2) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if held := f.held; held != nil {
		f.waiting++
		f.mu.Unlock()
		<-held
		f.mu.Lock()
	}
	w.Header().Set("Content-Type", "text/xml;charset=UTF-8")
	if f.throttle > 0 {
		f.throttle--
		f.refused++
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, `<Response><Errors><Error><Code>RequestLimitExceeded</Code><Message>Request limit exceeded.</Message></Error></Errors><RequestID>x</RequestID></Response>`)
		return
	}
	err := r.ParseForm()
	if r.Context().Err() != nil || errors.Is(err, io.ErrUnexpectedEOF) {
		return // the program has ended meanwhile
	}
	if err != nil || r.Form.Get("Action") != "DescribeTags" || r.Form.Get("Filter.1.Name") != "resource-id" ||
		!strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=fake/") {
		f.problems = append(f.problems, fmt.Sprintf("EC2 was asked %v, %v", r.Form, err))
	}
	ids := 0
	var all []item
	for ; r.Form.Has(fmt.Sprintf("Filter.1.Value.%d", ids+1)); ids++ {
		id := r.Form.Get(fmt.Sprintf("Filter.1.Value.%d", ids+1))
		for k, v := range f.tags[id] {
			all = append(all, item{id, "instance", k, v})
		}
	}
	if f.most = max(f.most, ids); ids > 200 || ids == 0 {
		f.problems = append(f.problems, fmt.Sprintf("EC2 was asked for %d instances at once", ids))
	}
	slices.SortFunc(all, func(a, b item) int { return strings.Compare(a.ResourceID+a.Key, b.ResourceID+b.Key) })
	from, _ := strconv.Atoi(r.Form.Get("NextToken"))
	if id := r.Header.Get("Amz-Sdk-Invocation-Id"); from == 0 && (id == "" || id != f.last) {
		f.calls++
		f.last = id
	}
	answer := response{RequestID: "x", Tags: all[from:min(from+page, len(all))]}
	if from+page < len(all) {
		answer.Next = strconv.Itoa(from + page)
	}
	if err := xml.NewEncoder(w).Encode(answer); err != nil && r.Context().Err() == nil {
		f.problems = append(f.problems, err.Error())
	}
}
