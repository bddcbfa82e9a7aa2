package informer

import (
	"errors"
	"iter"
)

// Collect returns what a loop yields as a slice: Informer.List, All and Keys, Index.Get and In. Its error joins those of
// the loop. Where that is not nil, the slice is not all that there is: it lacks each object that cannot be decoded, and
// what has not arrived before a source is synced.
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
