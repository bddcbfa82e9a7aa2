package config

import (
	"context"
	"sync"

	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/cli/setup"
	"github.com/tattler-dev/tattler/internal/rights"
)

// survey asks the server how many objects a plan watches, and what of it we may not do.
type survey struct {
	web      []rights.Right // for the web page
	reviewer *rights.Reviewer
	counter  *setup.Counter
}

// findings are what a survey found.
type findings struct {
	kinds []finding     // as Plan.Kinds
	other []rights.Lack // of rights that no kind needs
}

// finding is what was found out about a kind.
type finding struct {
	objects int64
	// more says that there are more than objects; the server does not count what a selector selects.
	more bool
	// unknown is why objects is not known.
	unknown error
	lacks   []rights.Lack
	// may is true where the kind may be listed and watched, at least in some of the namespaces.
	may bool
}

// of asks about a plan. The context bounds it: what was not answered in time is not known.
func (s *survey) of(ctx context.Context, p *capture.Plan) findings {
	f := findings{kinds: make([]finding, len(p.Kinds))}
	var asking sync.WaitGroup
	for i, k := range p.Kinds {
		asking.Go(func() { f.kinds[i] = s.kind(ctx, k) })
	}
	asking.Go(func() {
		for _, r := range append(rights.Of(p), s.web...) {
			if r.Without == "" {
				continue
			}
			if l := s.reviewer.Exactly(ctx, r); l != nil {
				f.other = append(f.other, *l)
			}
		}
	})
	asking.Wait()
	return f
}

func (s *survey) kind(ctx context.Context, k capture.Planned) (f finding) {
	for i, r := range rights.OfKind(k) {
		l := s.reviewer.Exactly(ctx, r)
		if l != nil {
			f.lacks = append(f.lacks, *l)
		}
		f.may = f.may || l == nil || l.Err != nil || len(l.Missing) == 1 && l.Missing[0] == "get"
		n, more, err := s.counter.Count(ctx, k.Resource, k.Streams[i])
		f.objects, f.more = f.objects+n, f.more || more
		if err != nil && f.unknown == nil {
			f.unknown = err
		}
	}
	return f
}
