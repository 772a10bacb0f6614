package history_test

// The annotations of a revision: as many of the parent's as fit beside the stamp.

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/internal/fakeserver"
)

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// full returns annotations of exactly so many bytes that no others fit beside them.
func full(sizes map[string]int, room string) map[string]string {
	out, left := map[string]string{}, 256<<10
	for k, size := range sizes {
		out[k] = strings.Repeat("x", size)
		left -= len(k) + size
	}
	out[room] = strings.Repeat("x", left-len(room))
	return out
}

// validating refuses annotations as the API server does.
func validating(s *server) {
	refuse := func(c fakeserver.Call, annotations map[string]string) error {
		if errs := validation.ValidateAnnotations(annotations, field.NewPath("metadata", "annotations")); len(errs) > 0 {
			return apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "ControllerRevision"}, c.Name, errs)
		}
		return nil
	}
	s.Before = func(c fakeserver.Call) error {
		if o, ok := c.Object.(*appsv1.ControllerRevision); ok && c.Verb == "create" {
			return refuse(c, o.Annotations)
		}
		if c.Verb == "patch" && c.Kind == "ControllerRevision" {
			var patch struct {
				Metadata struct{ Annotations map[string]*string }
			}
			if err := json.Unmarshal([]byte(c.Body), &patch); err != nil {
				return err
			}
			after := maps.Clone(s.stored()[c.Name].Annotations)
			for k, v := range patch.Metadata.Annotations {
				if delete(after, k); v != nil {
					after[k] = *v
				}
			}
			return refuse(c, after)
		}
		return nil
	}
}

// TestAnnotationsFit records a parent whose annotations leave no room for a stamp: what kubectl applied last is left
// out first, then the largest, and no more than needed.
func TestAnnotationsFit(t *testing.T) {
	for name, c := range map[string]struct {
		parent map[string]string
		lost   string
	}{
		"last applied":     {full(map[string]int{lastApplied: 100, "small": 10}, "large"), lastApplied},
		"the largest":      {full(map[string]int{"small": 10, "other": 300}, "large"), "large"},
		"nothing too much": {map[string]string{lastApplied: "{}", "small": "x"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			ds := agent("agent:1")
			ds.Annotations = maps.Clone(c.parent)
			s := newServer(t, ds)
			validating(s)
			_, recorded := mustPass(t, newLog(s), s.parent())
			got := s.stored()[recorded.Update.Name].Annotations
			for k := range c.parent {
				if _, kept := got[k]; kept == (k == c.lost) {
					t.Errorf("%s: kept %t", k, kept)
				}
			}
			if got[history.ParentUIDAnnotation] != "agent-uid" || got[history.ParentGenerationAnnotation] != "1" {
				t.Error("it has no stamp")
			}
		})
	}
}

// A revision that somebody else recorded with as many annotations as there may be gets its number and its stamp all the
// same.
func TestStampOfAFullRevision(t *testing.T) {
	ds := agent("agent:1")
	old := revisionOf(t, ds, "agent:1", 1)
	old.Annotations = full(map[string]int{"small": 10}, "large")
	s := newServer(t, ds, old, revisionOf(t, ds, "agent:2", 2))
	validating(s)
	_, recorded := mustPass(t, newLog(s), s.parent())
	got := s.stored()[old.Name]
	if recorded.Update.Number != 3 || got.Revision != 3 || got.Annotations[history.ParentGenerationAnnotation] != "1" {
		t.Errorf("recorded %+v", recorded.Update)
	}
	if _, kept := got.Annotations["large"]; kept || got.Annotations["small"] == "" {
		t.Error("the wrong ones were left out")
	}
	// A refusal for another reason is an error.
	s = newServer(t, ds, revisionOf(t, ds, "agent:1", 1), revisionOf(t, ds, "agent:2", 2))
	s.Before = fail("patch", apierrors.NewInvalid(schema.GroupKind{}, "x", nil))
	if _, recorded, err := pass(t.Context(), newLog(s), s.parent()); recorded != nil || !apierrors.IsInvalid(err) || len(s.Calls("patch")) != 1 {
		t.Errorf("%+v, %v, %d patches", recorded, err, len(s.Calls("patch")))
	}
}

// TestANamesakeThatNobodyOwns puts an equal revision under the name that a new one would get, which the cache does not
// show. If the laws let the parent have it, it is adopted, and is no reason to count a collision (H5).
func TestANamesakeThatNobodyOwns(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*appsv1.ControllerRevision)
		ours   bool
	}{
		"adoptable":    {func(*appsv1.ControllerRevision) {}, true},
		"not selected": {func(o *appsv1.ControllerRevision) { o.Labels["app"] = "other" }, false},
		"of another kind": {func(o *appsv1.ControllerRevision) {
			o.Labels = map[string]string{"app": "agent", "controller.kubernetes.io/hash": "x"}
		}, false},
		"with other content": {func(o *appsv1.ControllerRevision) { o.Data = revisionOf(t, agent(""), "agent:7", 1).Data }, false},
	} {
		t.Run(name, func(t *testing.T) {
			ds := agent("agent:1")
			namesake := revisionOf(t, ds, "agent:1", 4)
			namesake.OwnerReferences = nil
			c.change(namesake)
			s := newServer(t, ds, namesake)
			_, recorded := mustPass(t, lagging(s), s.parent())
			owner := s.stored()[namesake.Name].OwnerReferences
			if c.ours != (recorded.CollisionCount == nil) || c.ours != (recorded.Update.Name == namesake.Name) || c.ours != (len(owner) == 1) {
				t.Errorf("recorded %+v with count %v, owners %v", recorded.Update, recorded.CollisionCount, owner)
			}
		})
	}
	// Nothing is adopted for a parent that is gone, or is another one by now.
	ds := agent("agent:1")
	namesake := revisionOf(t, ds, "agent:1", 4)
	namesake.OwnerReferences = nil
	s := newServer(t, ds, namesake)
	gets := 0
	s.Before = func(c fakeserver.Call) error {
		if c.Verb == "get" && c.Kind == "DaemonSet" {
			if gets++; gets == 2 { // the first one is the fence's
				return apierrors.NewNotFound(schema.GroupResource{}, "agent")
			}
		}
		return nil
	}
	if _, recorded, err := pass(t.Context(), lagging(s), ds); recorded != nil || err == nil || len(s.stored()[namesake.Name].OwnerReferences) != 0 {
		t.Errorf("%+v, %v", recorded, err)
	}
}
