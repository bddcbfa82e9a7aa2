package informertest

import (
	"bytes"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxLists bounds the lists with continue tokens; older tokens expire.
const maxLists = 256

// snapshot is a list that is read in pages.
type snapshot struct {
	objects []*object
	rv      uint64
}

// page is the content of a list response.
type page struct {
	meta    metav1.ListMeta
	objects []*object
}

// get answers with the requested object.
func (c *call) get() {
	c.s.mu.Lock()
	o := c.s.resource(c.at.gvr).objects[c.at.key]
	c.s.mu.Unlock()
	if o == nil {
		c.refuse(apierrors.NewNotFound(c.at.gvr.GroupResource(), c.at.name))
		return
	}
	c.answerObject(o)
}

// answerObject answers with one object.
func (c *call) answerObject(o *object) {
	c.answer(func(w io.Writer) error {
		b := c.media.object(nil, c.kind, o)
		if !c.media.protobuf {
			b = append(b, '\n')
		}
		_, err := w.Write(b)
		return err
	})
}

// list answers with one page.
func (c *call) list() {
	p, err := c.page()
	if err != nil {
		c.refuse(err)
		return
	}
	c.answer(func(w io.Writer) error {
		if c.media.protobuf {
			return c.writeMessages(w, p)
		}
		return c.writeJSON(w, p)
	})
}

// answer writes a body, subject to faults.
func (c *call) answer(write func(io.Writer) error) {
	b := c.body(c.media.contentType(), whenLarge)
	if fault := c.frameFault(nil); fault != 0 {
		var whole bytes.Buffer
		_ = write(&whole) // a buffer does not fail
		_, _ = b.Write(c.spoil(fault, whole.Bytes(), whole.Len()/2))
		if fault == CutFrame {
			b.abort()
		}
	} else if write(b) != nil {
		return // the client is gone
	}
	b.close()
}

// page returns the requested objects: the current ones, those of a version in the history, or the next page.
func (c *call) page() (page, error) {
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.opts.Continue != "" {
		return c.nextPage()
	}
	rv, _ := c.version() // checked before
	if rv > s.rv {
		return page{}, tooLarge(rv, s.rv)
	}
	res, list := s.resource(c.at.gvr), &snapshot{rv: s.rv}
	exact := c.opts.ResourceVersionMatch == metav1.ResourceVersionMatchExact || c.opts.ResourceVersionMatch == "" && c.opts.Limit > 0
	all := res.inOrder()
	if rv > 0 && exact {
		if rv < max(s.oldest, res.oldest) {
			return page{}, apierrors.NewResourceExpired(fmt.Sprintf("The resourceVersion for the provided list is too old: %d", rv))
		}
		list.rv, all = rv, res.before(res.after(rv))
	}
	list.objects = c.selected(all)
	limit := int(c.opts.Limit)
	if c.opts.ResourceVersion == "0" { // a watch cache has no pages at any version
		limit = 0
	}
	return c.cutPage(list, 0, 0, limit), nil
}

// nextPage returns the page for a continue token; s.mu is held.
func (c *call) nextPage() (page, error) {
	if v := c.opts.ResourceVersion; v != "" && v != "0" {
		return page{}, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
	}
	var id, from int
	if n, err := fmt.Sscanf(c.opts.Continue, "list-%d-%d", &id, &from); n != 2 || err != nil {
		return page{}, apierrors.NewBadRequest("continue key is not valid: " + c.opts.Continue)
	}
	list := c.s.lists[id]
	if list == nil || from > len(list.objects) {
		return page{}, apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result.")
	}
	return c.cutPage(list, id, from, int(c.opts.Limit)), nil
}

// cutPage returns a list's objects from a position on. id is 0 for a list that has no token yet; s.mu is held.
func (c *call) cutPage(list *snapshot, id, from, limit int) page {
	p := page{metav1.ListMeta{ResourceVersion: formatVersion(list.rv)}, c.s.resource(c.at.gvr).formedAll(list.objects[from:])}
	rest := len(p.objects) - limit
	if limit <= 0 || rest <= 0 {
		return p
	}
	if id == 0 {
		c.s.nextList++
		id = c.s.nextList
		c.s.lists[id] = list
		delete(c.s.lists, id-maxLists)
	}
	p.objects = p.objects[:limit]
	p.meta.Continue = fmt.Sprintf("list-%d-%d", id, from+limit)
	if c.unfiltered() { // otherwise a real server does not know
		n := int64(rest)
		p.meta.RemainingItemCount = &n
	}
	return p
}

func tooLarge(rv, current uint64) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", rv, current), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	return err
}

// writeJSON writes a list in the form of its kind: custom resources with sorted keys and typed items, the
// others with metadata first.
func (c *call) writeJSON(w io.Writer, p page) error {
	apiVersion, kind := c.media.names(c.kind)
	custom := c.kind.new == nil && c.media.partial == ""
	head, tail := `{"kind":"`+kind+`List","apiVersion":"`+apiVersion+`","metadata":`+string(encodeJSON(p.meta))+`,"items":`, "}\n"
	if custom {
		head, tail = `{"apiVersion":"`+apiVersion+`","items":`, `,"kind":"`+kind+`List","metadata":`+string(encodeJSON(p.meta))+"}\n"
	}
	if len(p.objects) == 0 && c.media.partial != "" { // as Go encodes an empty list of metadata
		_, err := io.WriteString(w, head+"null"+tail)
		return err
	}
	scratch := append([]byte(head), '[')
	for i, o := range p.objects {
		if i > 0 {
			scratch = append(scratch, ',')
		}
		scratch = c.media.item(scratch, c.kind, o)
		if _, err := w.Write(scratch); err != nil {
			return err
		}
		scratch = scratch[:0]
	}
	_, err := w.Write(append(append(scratch, ']'), tail...))
	return err
}

// writeMessages writes a list in protobuf. A large list of generated objects is generated twice, because the
// size comes first.
func (c *call) writeMessages(w io.Writer, p page) error {
	const metadata, items = 1, 2
	order := [2]protowire.Number{metadata, items}
	if c.media.partial == "v1beta1" { // its list swaps the field numbers
		order = [2]protowire.Number{items, metadata}
	}
	meta := protowire.AppendBytes(protowire.AppendTag(nil, order[0], protowire.BytesType), encodeMessage(&p.meta))
	message := func(i int) []byte { return c.media.message(c.kind, p.objects[i]) }
	if n := len(p.objects); n <= atOnce {
		held := make([][]byte, n)
		for i := range held {
			held[i] = message(i)
		}
		message = func(i int) []byte { return held[i] }
	}
	size := len(meta)
	for i := range p.objects {
		size += 1 + protowire.SizeBytes(len(message(i)))
	}
	apiVersion, kind := c.media.names(c.kind)
	scratch := envelope(nil, apiVersion, kind+"List", size)
	if order[0] == metadata {
		scratch = append(scratch, meta...)
	}
	for i := range p.objects {
		scratch = protowire.AppendBytes(protowire.AppendTag(scratch, order[1], protowire.BytesType), message(i))
		if _, err := w.Write(scratch); err != nil {
			return err
		}
		scratch = scratch[:0]
	}
	if order[0] != metadata {
		scratch = append(scratch, meta...)
	}
	_, err := w.Write(append(scratch, tail...))
	return err
}
