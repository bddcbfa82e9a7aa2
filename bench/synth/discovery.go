package synth

import (
	"io"
	"net/http"
)

// discovery has the responses to the discovery requests of clients: only pods are served.
func (s *Server) discovery() {
	for path, body := range map[string]string{
		"GET /openapi/v3/api/v1": string(OpenAPI()),

		"GET /api":    `{"kind":"APIVersions","versions":["v1"]}`,
		"GET /apis":   `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`,
		"GET /api/v1": `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","verbs":["get","list","watch"],"shortNames":["po"],"categories":["all"]}]}`,
	} {
		s.mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, body) // the client may have disconnected
		})
	}
}
