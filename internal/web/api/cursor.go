package api

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"iter"
	"net/http"

	"github.com/tattler-dev/tattler/internal/journal"
)

// place is where an object is in the order of objects; it need not exist. It is the cursor of a page.
type place struct{ resource, cluster, namespace, name, uid string }

func placeOf(s *journal.State) place {
	return place{s.Kind.GroupResource(), s.Kind.Cluster, s.Namespace, s.Name, s.UID}
}

// String encodes a place for a URL.
func (p place) String() string {
	b, err := json.Marshal([]string{p.resource, p.cluster, p.namespace, p.name, p.uid})
	if err != nil {
		panic(err) // a list of texts
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// parsePlace decodes a String.
func parsePlace(text string) (p place, err error) {
	var parts []string
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(b, &parts)
	}
	if err != nil || len(parts) != 5 {
		return p, problem(http.StatusBadRequest, "after: %q is not the next of a page", text)
	}
	return place{parts[0], parts[1], parts[2], parts[3], parts[4]}, nil
}

// compare orders objects as journal.Reader.At does, apart from those of one name.
func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.resource, q.resource), cmp.Compare(p.cluster, q.cluster), cmp.Compare(p.namespace, q.namespace), cmp.Compare(p.name, q.name))
}

// next yields the states after a place. Of those of one name, which are ordered by their age, all are after an object that the
// journal no longer has: rather once more than never.
func (p place) next(states iter.Seq2[journal.State, error]) iter.Seq2[journal.State, error] {
	return func(yield func(journal.State, error) bool) {
		var namesakes []journal.State // until the object is found
		found := false
		for s, err := range states {
			if err == nil && !found {
				at := placeOf(&s)
				switch order := at.compare(p); {
				case order < 0:
					continue
				case order == 0:
					if found = at.uid == p.uid; !found {
						namesakes = append(namesakes, s)
					}
					continue
				}
				if found = true; !yieldAll(yield, namesakes) {
					return
				}
			}
			if !yield(s, err) {
				return
			}
		}
		if !found {
			yieldAll(yield, namesakes)
		}
	}
}

func yieldAll(yield func(journal.State, error) bool, states []journal.State) bool {
	for i := range states {
		if !yield(states[i], nil) {
			return false
		}
	}
	return true
}
