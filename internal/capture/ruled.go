package capture

import (
	"errors"
	"slices"
)

// checkRules returns an error for a resource in the redaction rules that the server does not have and that no
// custom resource can define later: a mistyped rule would hide nothing.
func (w *Watcher) checkRules(c *Catalog) error {
	for _, text := range w.ruled() {
		var unknown *UnknownTypeError
		if err := c.CheckRule(text); errors.As(err, &unknown) && !unknown.Pending {
			return err
		}
	}
	return nil
}

// UnfilledRules returns the resources in the redaction rules that the server does not have now, in the rules'
// order. It is safe for concurrent use.
func (w *Watcher) UnfilledRules() []string {
	w.mu.Lock()
	c := w.catalog
	w.mu.Unlock()
	if c == nil {
		return nil
	}
	return c.unfilled(w.ruled())
}

// unfilled returns those of the rules' resources that the server does not have, each once.
func (c *Catalog) unfilled(resources []string) (out []string) {
	for _, text := range resources {
		if c.CheckRule(text) != nil && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}

// ruled returns the resources that the redaction rules name.
func (w *Watcher) ruled() []string {
	if w.o.Redactor == nil { // optional for a plan
		return nil
	}
	return w.o.Redactor.Resources()
}

// learn registers the kinds' names with the rules before their objects are read.
func (w *Watcher) learn(c *Catalog) {
	for _, r := range c.preferred {
		if w.o.Redactor != nil {
			w.o.Redactor.Learn(r.Group, r.Resource, otherNames(r)...)
		}
		if w.o.Quiet != nil {
			w.o.Quiet.Learn(r.Group, r.Resource, otherNames(r)...)
		}
	}
}
