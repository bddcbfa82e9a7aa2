package informer

import (
	"errors"
	"iter"
)

// Collect returns the values of a loop (Informer.List, All and Keys, Index.Get and In) as a slice, and the loop's errors,
// joined. If the error is not nil, the slice is incomplete: it lacks objects that cannot be decoded or, before the source
// is synced, have not arrived.
func Collect[V any](loop iter.Seq2[V, error]) ([]V, error) {
	var all []V
	var errs []error
	for v, err := range loop {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, v)
	}
	return all, errors.Join(errs...)
}
