package children

import (
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cairn-dev/cairn/pass"
)

// This file carries out the writes of a pass so that a refused one does not stop the others, and so that a refusal
// which applies to all is not met a thousand times.

// each does f for all items, the kinds one after the other, in the order in which each kind is first. Those of a kind
// are done in batches of 1, 2, 4 and so on, up to [pass.AtOnce]. A failure that is the item's own makes the next batch
// one item again, and one that applies to all of the kind ([refusesAll]) ends the kind. Before each batch but the
// first of all it calls still, and stops with its error. It returns all errors, joined, without those which say that
// the namespace is being deleted: nothing can be created there, and an error in the parent's status would not help.
func each[T any](items []T, kindOf func(T) schema.GroupKind, still func() error, f func(T) error) error {
	var errs []error
	began := false
	for _, rest := range byKind(items, kindOf) {
		for size := 1; len(rest) > 0; {
			if began {
				if err := still(); err != nil {
					return errors.Join(append(errs, err)...)
				}
			}
			began = true
			batch := rest[:min(size, len(rest))]
			rest = rest[len(batch):]
			failed, ofAll := doBatch(batch, f)
			size = min(2*size, pass.AtOnce)
			if len(failed) > 0 {
				size = 1
			}
			if ofAll {
				rest = nil
			}
			for _, err := range failed {
				if !terminating(err) {
					errs = append(errs, err)
				}
			}
		}
	}
	return errors.Join(errs...)
}

// byKind returns the items of one kind after those of another, the kinds in the order of their first items.
func byKind[T any](items []T, kindOf func(T) schema.GroupKind) [][]T {
	var out [][]T
	at := map[schema.GroupKind]int{}
	for _, item := range items {
		kind := kindOf(item)
		i, ok := at[kind]
		if !ok {
			i = len(out)
			at[kind], out = i, append(out, nil)
		}
		out[i] = append(out[i], item)
	}
	return out
}

// doBatch does f for a batch at once. ofAll says that the other items of the kind would fail in the same way.
func doBatch[T any](batch []T, f func(T) error) (failed []error, ofAll bool) {
	var writing sync.Mutex
	_ = pass.Each(batch, func(item T) error {
		err := f(item)
		if err == nil {
			return nil
		}
		writing.Lock()
		defer writing.Unlock()
		failed, ofAll = append(failed, err), ofAll || concernsAll(err)
		return err
	})
	return failed, ofAll
}

// concernsAll reports whether the next child of the kind would fail in the same way.
func concernsAll(err error) bool {
	if _, ok := errors.AsType[*TakenError](err); ok || pass.IsStale(err) {
		return false
	}
	return refusesAll(err)
}
