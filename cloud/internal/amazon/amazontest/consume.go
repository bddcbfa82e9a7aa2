package amazontest

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// Empty sets a function to call when a client asks an empty queue for messages.
func (s *Server) Empty(f func()) { s.set(func() { s.empty = f }) }

// consume hands out the messages of a queue, each once, and deletes them.
func (s *Server) consume(w http.ResponseWriter, r *http.Request, body []byte) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".DeleteMessage") {
		var in struct{ ReceiptHandle string }
		if err := json.Unmarshal(body, &in); err != nil || in.ReceiptHandle == "" {
			s.t.Errorf("delete %q: %v", body, err)
		}
		s.set(func() { s.deleted++ })
		return
	}
	out := []map[string]any{}
	over := func() {}
	s.set(func() {
		for len(out) < 10 && s.received < len(s.messages) {
			out = append(out, map[string]any{"Body": s.messages[s.received].Body, "ReceiptHandle": strconv.Itoa(s.received)})
			s.received++
		}
		if len(out) == 0 && s.empty != nil {
			over = s.empty
		}
		if len(out) == 0 && s.deleted != s.received {
			s.t.Errorf("%d of %d were deleted", s.deleted, s.received)
		}
	})
	over()
	if len(out) == 0 {
		<-r.Context().Done() // a long poll
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"Messages": out})
}
