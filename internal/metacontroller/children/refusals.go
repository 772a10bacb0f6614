package children

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	"github.com/cairn-dev/cairn/internal/metacontroller/apply"
)

// This file remembers refusals for a moment. A parent whose children change all the time is reconciled many times a
// second, and a policy that refuses a hundred children would get a request for each of them each time.

// refusedFor is for how long a refusal is believed: the end of a policy is noticed that much later at most.
const refusedFor = 5 * time.Second

// replacement is the variant of the question whether a child can be recreated.
const replacement = "replacement"

// refusals remember what the API server has refused of late, by the child's UID. They are safe for concurrent use.
type refusals struct{ kept *lru.Cache } // of map[string]refused, which nobody writes to, by variant

type refused struct {
	version string
	desired map[string]any
	until   time.Time
	why     error
}

func (r refusals) all(child types.UID) map[string]refused {
	v, _ := r.kept.Get(child)
	all, _ := v.(map[string]refused)
	return all
}

// of returns why desired was refused when it was last asked about, nil if it was not refused; fresh says that this was
// so recently that there is no point in asking again.
func (r refusals) of(variant string, observed, desired *unstructured.Unstructured, now time.Time) (fresh bool, why error) {
	e, ok := r.all(observed.GetUID())[variant]
	if !ok || !apply.Equal(e.desired, desired.Object) {
		return false, nil
	}
	return now.Before(e.until) && e.version == observed.GetResourceVersion(), e.why
}

// add remembers a refusal. Two calls at once may lose one of them, which costs a request.
func (r refusals) add(variant string, observed, desired *unstructured.Unstructured, why error, now time.Time) {
	next := map[string]refused{}
	maps.Copy(next, r.all(observed.GetUID()))
	next[variant] = refused{observed.GetResourceVersion(), desired.Object, now.Add(refusedFor), why}
	r.kept.Add(observed.GetUID(), next)
}

// forget drops the refusals of a child: the same was accepted since, or the child is deleted.
func (r refusals) forget(child types.UID) { r.kept.Remove(child) }
