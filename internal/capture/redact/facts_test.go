package redact

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// TestFactsForget: invented names neither fill the memory nor change the facts of others.
func TestFactsForget(t *testing.T) {
	var all sync.WaitGroup
	for part := range 4 {
		all.Go(func() {
			for i := range maxNames / 2 {
				made := fmt.Sprintf("made-up-%d-%d-password", part, i)
				if kind := factsOf(made).kind; kind != credentialName {
					t.Errorf("%s is %d", made, kind)
				}
				if kind := factsOf("spec").kind; kind != plainName {
					t.Errorf("spec is %d", kind)
				}
			}
		})
	}
	all.Wait()
	long := strings.Repeat("x", maxRemembered) + "-password"
	if kind := factsOf(long).kind; kind != credentialName {
		t.Errorf("%s is %d", long, kind)
	}
	remembered.RLock()
	defer remembered.RUnlock()
	if _, there := remembered.facts[long]; there || len(remembered.facts) > maxNames {
		t.Errorf("%d names are remembered, the long one: %t", len(remembered.facts), there)
	}
}
