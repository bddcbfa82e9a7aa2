package informertest

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// checkSelector refuses field selectors that this server does not support.
func (c *call) checkSelector() error {
	if c.opts.FieldSelector == nil {
		return nil
	}
	for _, r := range c.opts.FieldSelector.Requirements() {
		if r.Field != "metadata.name" && r.Field != "metadata.namespace" {
			return apierrors.NewBadRequest("field label not supported: " + r.Field)
		}
	}
	return nil
}

// selects reports whether the request selects an object; nil is not selected.
func (c *call) selects(o *object) bool {
	if o == nil || c.at.namespace != "" && o.namespace != c.at.namespace {
		return false
	}
	if l := c.opts.LabelSelector; l != nil && !l.Empty() && !l.Matches(labels.Set(o.labels(c.kind))) {
		return false
	}
	f := c.opts.FieldSelector
	return f == nil || f.Empty() || f.Matches(fields.Set{"metadata.name": o.name, "metadata.namespace": o.namespace})
}

// unfiltered reports whether the request has no selector.
func (c *call) unfiltered() bool {
	l, f := c.opts.LabelSelector, c.opts.FieldSelector
	return (l == nil || l.Empty()) && (f == nil || f.Empty())
}

// selected returns the selected objects; all is shared.
func (c *call) selected(all []*object) []*object {
	if c.at.namespace == "" && c.unfiltered() {
		return all
	}
	var some []*object
	for _, o := range all {
		if c.selects(o) {
			some = append(some, o)
		}
	}
	return some
}
