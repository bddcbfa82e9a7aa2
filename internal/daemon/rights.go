package daemon

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/rights"
)

// The API server does not end a watch whose right was taken away: the stream stays live until the watch ends, minutes
// later. And it needs some rights only at a restart. So the daemon reviews its rights while it runs. A review costs a
// request per namespace, and up to three per right that the rules do not show. The pauses keep that to two requests per
// second, and to ten while the status is requested all the time.
const (
	reviewPause = 10 * time.Second
	// askedPause is the pause if the status is requested.
	askedPause = time.Second
	// perReview and perAsked are the pauses for each request of the last review.
	perReview = 500 * time.Millisecond
	perAsked  = 100 * time.Millisecond
	// reviewTimeout bounds one review.
	reviewTimeout = 20 * time.Second
	// maxNamed bounds the rights that one line of the log names.
	maxNamed = 10
)

// reviewRights reviews the daemon's rights in all clusters until ctx ends.
func (d *daemon) reviewRights(ctx context.Context) {
	var all sync.WaitGroup
	for _, r := range d.recordings {
		all.Go(func() { r.reviewRights(ctx) })
	}
	all.Wait()
}

// reviewRights reviews the daemon's rights in one cluster until ctx ends.
func (r *recording) reviewRights(ctx context.Context) {
	var reviewer *rights.Reviewer // nil: not made, or it cannot be
	var client *rest.Config       // of reviewer
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	var last time.Time
	cost := int64(0) // requests of the last review
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.asked:
			timer.Reset(max(0, time.Until(last.Add(max(askedPause, time.Duration(cost)*perAsked)))))
			continue
		case <-timer.C:
		}
		w, config := r.state.reviewable()
		if w == nil { // it starts, and its streams show what they may do
			timer.Reset(time.Second)
			continue
		}
		if config != client {
			client, reviewer = config, r.reviewer(config)
		}
		if reviewer == nil {
			timer.Reset(reviewPause)
			continue
		}
		before := reviewer.Requests()
		r.review(ctx, w, reviewer)
		last, cost = time.Now(), reviewer.Requests()-before
		timer.Reset(max(reviewPause, time.Duration(cost)*perReview))
	}
}

// reviewer returns what reviews the rights of a client; nil if there can be none.
func (r *recording) reviewer(client *rest.Config) *rights.Reviewer {
	reviewer, err := rights.NewReviewer(client)
	if err != nil {
		r.log.Warn("the rights cannot be reviewed", "error", err)
		return nil
	}
	return reviewer
}

// review reviews the rights for what is watched now. If some were granted, refused streams try again at once.
func (r *recording) review(ctx context.Context, w *capture.Watcher, reviewer *rights.Reviewer) {
	plan := w.Planned()
	all := slices.Concat(rights.Of(plan), rights.OfGroups(plan), r.Rights)
	within, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	found, err := reviewer.Lacking(within, all)
	if ctx.Err() != nil {
		return
	}
	var lacks []control.Lack
	for _, l := range found {
		if l.Err != nil {
			err = l.Err
			continue
		}
		lacks = append(lacks, control.Lack{Resource: l.GroupResource(), Namespace: l.Namespace, Name: l.Name, Verbs: l.Missing, Without: l.Without})
	}
	lost, granted := r.state.lacks(lacks, err)
	if len(lost) > 0 {
		r.log.Warn("rights are missing: tattler rbac prints the roles that grant them", "rights", named(lost))
	}
	if len(granted) > 0 {
		r.log.Info("rights were granted", "rights", named(granted))
		w.Hurry()
	}
}

// named lists rights in a line.
func named(all []control.Lack) string {
	var texts []string
	for i := range all {
		if i == maxNamed {
			texts = append(texts, fmt.Sprintf("and %d more", len(all)-i))
			break
		}
		texts = append(texts, all[i].Text())
	}
	return strings.Join(texts, "; ")
}

// ask makes the next review come soon.
func (r *recording) ask() {
	select {
	case r.asked <- struct{}{}:
	default: // it does already
	}
}

// lacks records a review: the missing rights, or err if some of them are unknown. It returns those that were not
// missing at the last complete review, and those that no longer are.
func (s *state) lacks(now []control.Lack, err error) (lost, granted []control.Lack) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unreviewed = err; err != nil {
		return nil, nil // keep what is known
	}
	without := func(all, of []control.Lack) []control.Lack {
		return slices.DeleteFunc(slices.Clone(all), func(l control.Lack) bool {
			return slices.ContainsFunc(of, func(other control.Lack) bool { return other.Text() == l.Text() })
		})
	}
	lost, granted = without(now, s.missing), without(s.missing, now)
	s.missing = now
	return lost, granted
}
