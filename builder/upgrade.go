package builder

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/revision"
)

// This file reads what an earlier release of an author's controller has recorded, by the author's function. What is
// read without one is package history's.

// upgrades has revisions of other field paths or another API version read by an author's function, if there is one.
func upgrades[P client.Object](f format, upgrade func(old *unstructured.Unstructured) (P, error)) {
	if upgrade == nil {
		return
	}
	f.Upgrade = func(old *unstructured.Unstructured) (s *revision.Snapshot, err error) {
		parent, err := safely(func() (P, error) { return upgrade(old) })
		if err != nil {
			return nil, err
		}
		if isNil(parent) {
			return nil, errors.New("the function Upgrade returned nothing")
		}
		return f.Snapshot(parent)
	}
}

// safely calls a function of the author. A panic of it is an error.
func safely[T any](call func() (T, error)) (out T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return call()
}
