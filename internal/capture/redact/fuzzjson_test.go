package redact

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestJSONInTextIsSearchedLikeObjects writes random objects as JSON in a text, also several of them, in any spelling: what is hidden
// in the object must be hidden in the text.
func TestJSONInTextIsSearchedLikeObjects(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	g := speller{objects{rand.New(rand.NewPCG(seed, 3))}}
	r := redactor(t)
	hidden, spared := 0, 0
	for range 5000 / slower {
		object := g.object(4)
		var b strings.Builder
		for range g.IntN(2) {
			g.write(&b, g.object(2))
		}
		g.write(&b, object)
		text := map[string]any{"spec": map[string]any{"x": b.String()}}
		raw := []byte(encode(t, text))
		direct := map[string]any{"spec": map[string]any{"x": object}}
		before := encode(t, direct)
		hid, err := r.Apply("widgets.example.com", direct)
		if err != nil {
			t.Fatal(err)
		}
		hidText, err := r.Apply("widgets.example.com", text)
		if err != nil {
			t.Fatal(err)
		}
		if hid && !hidText {
			t.Fatalf("hidden in the object: %v, in the text: %v\n%s\n%s", hid, hidText, raw, before)
		}
		if hid {
			hidden++
		} else if !hidText {
			spared++
		}
	}
	if hidden < 250 || spared < 100 {
		t.Errorf("%d objects had something to hide, %d were spared: the test says little", hidden, spared)
	}
}
