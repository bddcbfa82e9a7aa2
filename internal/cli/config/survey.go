package config

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/rights"
)

// parallel is how many questions are on their way at a time.
const parallel = 8

// survey asks the server how many objects a plan watches, and what of it we may not do.
type survey struct {
	web      []rights.Right // for the web page
	reviewer *rights.Reviewer
	client   rest.Interface
	slots    chan struct{}
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
		n, more, err := s.count(ctx, k.Resource, k.Streams[i])
		f.objects, f.more = f.objects+n, f.more || more
		if err != nil && f.unknown == nil {
			f.unknown = err
		}
	}
	return f
}

// partial asks for metadata alone: a Secret's data does not come here.
const partial = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

// count asks for a list of one object, and how many more there are.
func (s *survey) count(ctx context.Context, r capture.Resource, sel capture.Selected) (n int64, more bool, err error) {
	base := "/apis/" + r.Group
	if r.Group == "" {
		base = "/api"
	}
	q := s.client.Get().AbsPath(base, r.Version)
	if sel.Namespace != "" {
		q = q.Namespace(sel.Namespace)
	}
	q = q.Resource(r.Resource).Param("limit", "1").SetHeader("Accept", partial)
	for name, value := range map[string]string{"labelSelector": sel.Labels, "fieldSelector": sel.Fields} {
		if value != "" {
			q = q.Param(name, value)
		}
	}
	var list metav1.PartialObjectMetadataList
	if err := s.ask(ctx, q, &list); err != nil {
		return 0, false, err
	}
	n = int64(len(list.Items))
	if left := list.RemainingItemCount; left != nil {
		return n + *left, false, nil
	}
	return n, list.Continue != "", nil
}

// ask sends a request when it is its turn, and reads the answer.
func (s *survey) ask(ctx context.Context, q *rest.Request, into any) error {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	result := q.Do(ctx)
	if err := result.Error(); err != nil {
		return err
	}
	body, err := result.Raw()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("read the server's answer: %w", err)
	}
	return nil
}
