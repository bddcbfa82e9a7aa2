package web

import (
	"crypto/rand"
	"sync"
)

// done is what an order did, for the page after it.
type done struct {
	Text []string
	// Failed says that a part was not done.
	Failed bool
}

// maxResults is how many results are kept: each is shown once, or a few times if the viewer reloads the page.
const maxResults = 64

// results keeps what orders did, so that reloading the page that says so does not repeat the order. The text is not in the
// URL, where a link could make it up. The zero value is empty.
type results struct {
	mu   sync.Mutex
	kept []result // the newest last
}

type result struct {
	token, viewer string
	done          done
}

// put keeps a result and returns its token.
func (r *results) put(viewer string, d done) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.kept) == maxResults {
		r.kept = append(r.kept[:0], r.kept[1:]...)
	}
	token := rand.Text()
	r.kept = append(r.kept, result{token, viewer, d})
	return token
}

// get returns the result with a token, for the viewer who gave the order; nil if there is none.
func (r *results) get(token, viewer string) *done {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.kept {
		if k.token == token && k.viewer == viewer {
			return &k.done
		}
	}
	return nil
}
