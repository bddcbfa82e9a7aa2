package doctor

import (
	"errors"
	"strings"
	"testing"

	"github.com/tattler-dev/tattler/internal/capture"
)

// TestOneOfSeveralClusters: --cluster names the cluster to examine, whose watch, context and rights count.
func TestOneOfSeveralClusters(t *testing.T) {
	s := serve(t)
	s.denied["list configmaps"] = true
	clusters := "clusters:\n- {name: east, context: prod}\n- name: west\n  context: prod\n  watch: [{resources: {include: [configmaps]}}]\n- {name: lost, context: nowhere}\n"
	for _, tc := range []struct{ cluster, want, without string }{
		{"", "choose one with --cluster east, or --cluster west", ""},
		{"other", `the configuration has no cluster "other"`, ""},
		{"lost", "nowhere", ""},
		{"east", "2 kinds may be listed and watched", "nothing of this may be watched"},
		{"west", "nothing of this may be watched", "2 kinds"},
	} {
		o, out := s.options(t, clusters)
		o.Setup.Cluster = tc.cluster
		err := Run(t.Context(), o)
		text := out.String()
		switch {
		case err == nil:
			t.Errorf("%q: no finding: %s", tc.cluster, text)
		case !errors.Is(err, ErrFindings):
			text += err.Error()
		}
		if !strings.Contains(text, tc.want) || tc.without != "" && strings.Contains(text, tc.without) {
			t.Errorf("%q: %s", tc.cluster, text)
		}
		var usage *capture.UsageError
		if tc.cluster == "" && !errors.As(err, &usage) {
			t.Errorf("%T: %v", err, err)
		}
	}
}
