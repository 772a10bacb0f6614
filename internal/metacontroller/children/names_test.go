package children_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/fakeserver"
	"github.com/cairn-dev/cairn/internal/metacontroller/children"
	"github.com/cairn-dev/cairn/ownership"
)

var (
	catSets = schema.GroupVersionKind{Group: "ctl.enisoc.com", Version: "v1", Kind: "CatSet"}
	pods    = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
)

func object(kind schema.GroupVersionKind, name string, uid types.UID) *unstructured.Unstructured {
	o := fakeserver.Of(kind)
	o.SetNamespace("ns")
	o.SetName(name)
	o.SetUID(uid)
	return o
}

func controlledBy(parent *unstructured.Unstructured) func(o *unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		o.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(parent, catSets)})
	}
}

// TestCheck: of what has a name it is said whose it is, and how soon to look again.
func TestCheck(t *testing.T) {
	cats := object(catSets, "cats", "uid-of-cats")
	names := children.Names{
		Parent: cats, Orphan: "nothing is adopted",
		Ours:     func(found client.Object) bool { return found.GetLabels()["ours"] != "no" },
		Describe: func(child *unstructured.Unstructured) string { return child.GetKind() + " " + child.GetName() },
	}
	for name, c := range map[string]struct {
		change func(o *unstructured.Unstructured)
		want   string        // part of the text
		again  time.Duration // of an *Error; otherwise the error is ErrStale
	}{
		"nobody's":       {func(*unstructured.Unstructured) {}, "Pod tom exists already and is not ours (it has no controller, and nothing is adopted)", 10 * time.Second},
		"another's":      {controlledBy(object(catSets, "dogs", "uid-of-dogs")), "CatSet dogs controls it", 10 * time.Second},
		"an earlier one": {controlledBy(object(catSets, "cats", "earlier")), "belongs to an earlier CatSet of this name", time.Second},
		"ours":           {controlledBy(cats), "Pod tom is there already", 0},
		"another controller's of the same parent": {func(o *unstructured.Unstructured) {
			controlledBy(cats)(o)
			o.SetLabels(map[string]string{"ours": "no"})
		}, "CatSet cats controls it, and this controller did not make it", 10 * time.Second},
		"going": {func(o *unstructured.Unstructured) {
			o.SetFinalizers([]string{"example.com/stays"})
			o.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1000, 0)})
		}, "the old Pod tom is still terminating", 0},
	} {
		t.Run(name, func(t *testing.T) {
			found, child := object(pods, "tom", "uid-of-tom"), object(pods, "tom", "")
			c.change(found)
			err := names.Check(t.Context(), fakeserver.New(t, found), child)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%v, want %s", err, c.want)
			}
			waits, only := children.OnlyTaken(err)
			if only != (c.again > 0) || only && waits.Again != c.again || errors.Is(err, ownership.ErrStale) == only {
				t.Errorf("%#v, to be looked at again in %v", err, c.again)
			}
			if _, only = children.OnlyTaken(errors.Join(err, context.Canceled)); only {
				t.Error("it is joined with another error")
			}
		})
	}
}

// TestGone: what is not there is in nobody's way, and a creation that was refused because of it is tried again.
func TestGone(t *testing.T) {
	names := children.Names{Parent: object(catSets, "cats", "uid-of-cats"), Describe: (*unstructured.Unstructured).GetName}
	server, child := fakeserver.New(t), object(pods, "tom", "")
	if err := names.Check(t.Context(), server, child); err != nil {
		t.Error(err)
	}
	if err := names.Refused(t.Context(), server, child); !errors.Is(err, ownership.ErrStale) {
		t.Errorf("error %v", err)
	}
}

// TestFree: a child that has to wait is in the way of no other. What is over soon is what a pass waits for.
func TestFree(t *testing.T) {
	stranger, soon := errors.New("a stranger"), ownership.ErrStale
	blocked := map[string]error{"b": stranger, "c": soon, "e": stranger}
	free, why := children.Free([]string{"a", "b", "c", "d", "e"}, func(name string) error { return blocked[name] })
	if strings.Join(free, " ") != "a d" || !errors.Is(why, soon) {
		t.Errorf("free %v, %v", free, why)
	}
	free, why = children.Free([]string{"b"}, func(name string) error { return blocked[name] })
	if len(free) != 0 || !errors.Is(why, stranger) {
		t.Errorf("free %v, %v", free, why)
	}
}
