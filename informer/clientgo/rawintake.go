package clientgo

import (
	"fmt"

	"k8s.io/client-go/tools/cache"
)

// rawIntake is an intake of rawObjects. A decoded one goes through the usual intake.
type rawIntake struct {
	*intake
	raw *rawSource
}

var (
	_ cache.Queue                  = (*rawIntake)(nil)
	_ cache.TransformingStore      = (*rawIntake)(nil)
	_ cache.ReflectorBookmarkStore = (*rawIntake)(nil)
)

// Transformer implements cache.TransformingStore.
func (in *rawIntake) Transformer() cache.TransformFunc {
	transform := in.intake.Transformer()
	return func(obj any) (any, error) {
		if o, ok := obj.(*rawObject); ok && o.obj != nil {
			return transform(o.obj)
		}
		return obj, nil
	}
}

// Add implements cache.ReflectorStore.
func (in *rawIntake) Add(obj any) error { return in.Update(obj) }

// Update implements cache.ReflectorStore. An undecodable version leaves the stored one.
func (in *rawIntake) Update(obj any) error {
	o, ok := obj.(*rawObject)
	switch {
	case !ok:
		return in.intake.Update(obj)
	case o.obj != nil:
		return in.intake.Update(o.obj)
	case o.undecodable:
		return nil
	}
	in.informer.put(change{key: o.key, item: o.item, obj: o.item.obj})
	return nil
}

// Delete implements cache.ReflectorStore. If the server's final version is undecodable, the stored one is delivered.
func (in *rawIntake) Delete(obj any) error {
	o, ok := obj.(*rawObject)
	switch {
	case !ok:
		return in.intake.Delete(obj)
	case o.obj != nil:
		return in.intake.Delete(o.obj)
	}
	if !o.undecodable {
		if last := o.item.decode(); last != nil {
			in.informer.drop(o.key, last)
			return nil
		}
	}
	in.informer.deleteMissed(o.key)
	return nil
}

// Replace implements cache.ReflectorStore.
func (in *rawIntake) Replace(objs []any, version string) error {
	changes := make([]change, 0, len(objs))
	left := uint64(0)
	for _, obj := range objs {
		o, ok := obj.(*rawObject)
		switch {
		case ok && o.undecodable:
			if it := in.informer.table.item(o.key); it != nil { // keep the last known state
				changes = append(changes, change{key: o.key, item: it})
			}
			continue
		case ok && o.made != nil:
			obj = *o.made
		case ok && o.obj == nil:
			changes = append(changes, change{key: o.key, item: o.item, obj: o.item.obj})
			continue
		case ok:
			obj = o.obj
		}
		c, err := in.receive(obj)
		if err != nil {
			return fmt.Errorf("replace objects: %w", err)
		}
		if c.item == nil {
			left++
			continue
		}
		changes = append(changes, c)
	}
	in.informer.left.Add(left)
	in.informer.replace(changes, version)
	return nil
}
