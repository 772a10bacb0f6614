package composite

import (
	"errors"
	"slices"
	"strings"
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/history/metacontroller"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/revision"
)

// logOf returns the log of tom, who asks for an image, with revisions that hold one each, and claim pods.
func logOf(t *testing.T, image string, stored ...*v1alpha1.ControllerRevision) *revisionLog {
	t.Helper()
	p := newPasses(t, catSpec)
	p.edit("image", image)
	objects := make([]client.Object, 0, len(stored))
	for _, o := range stored {
		objects = append(objects, o)
	}
	l, err := p.r.gatherer.resolve(t.Context(), p.tom(), objects)
	must(t, err)
	return l
}

func storedRevision(t *testing.T, number int64, image string, names ...string) *v1alpha1.ControllerRevision {
	t.Helper()
	p := newPasses(t, catSpec)
	p.edit("image", image)
	o := p.revisionObject(number)
	o.Annotations = nil // so that content decides
	claims := &metacontroller.Claims{}
	for _, name := range names {
		claims.Add(key(name))
	}
	o.Children = claims.Stored()
	o.UID, o.ResourceVersion = types.UID("uid-"+image), "1"
	return o
}

func belongingTo(l *revisionLog, image string) string {
	var out []string
	for _, e := range l.entries {
		if strings.Contains(string(e.object.ParentPatch.Raw), `"`+image+`"`) {
			for _, c := range e.children.Sorted() {
				out = append(out, c.Name)
			}
		}
	}
	return strings.Join(out, " ")
}

// TestAChildInTwoRevisions belongs to the newer one, by the numbers as they are stored: when the parent goes back, the
// revision that it goes back to was not the newer one as the child was moved.
func TestAChildInTwoRevisions(t *testing.T) {
	for name, c := range map[string]struct {
		asks   string
		a, b   int64
		inA    string
		number int64
	}{
		"in the middle":        {"b", 1, 2, "tom-0", 2},
		"on the way back":      {"a", 1, 2, "tom-0", 3},
		"Metacontroller's, b":  {"b", 0, 0, "tom-0", 1},
		"Metacontroller's, a":  {"a", 0, 0, "tom-0 tom-1", 1},
		"an edit in the midst": {"c", 1, 2, "tom-0", 3},
	} {
		t.Run(name, func(t *testing.T) {
			l := logOf(t, c.asks, storedRevision(t, c.a, "a", "tom-0", "tom-1"), storedRevision(t, c.b, "b", "tom-1"))
			if got := belongingTo(l, "a"); got != c.inA {
				t.Errorf("a has %s, want %s", got, c.inA)
			}
			if l.Number != c.number {
				t.Errorf("the newest one gets number %d, want %d", l.Number, c.number)
			}
		})
	}
}

// TestWhatIsStoredBeforeChildrenAreTouched: the newest revision first, then older ones, so that each child is in
// exactly one.
func TestWhatIsStoredBeforeChildrenAreTouched(t *testing.T) {
	l := logOf(t, "b", storedRevision(t, 1, "a", "tom-0", "tom-1"), storedRevision(t, 2, "b"))
	belongsTo := map[metacontroller.Child]string{key("tom-0"): l.entries[0].revision.Name, key("tom-1"): l.newest.revision.Name}
	var out []string
	for _, w := range l.writes(belongsTo, nil) {
		out = append(out, strings.TrimSpace(string(rune('0'+w.number))+" "+joined(w.children)))
	}
	if got := strings.Join(out, ", "); got != "2 tom-1, 1 tom-0" {
		t.Errorf("a pass writes %s", got)
	}
	if got := l.surplus(belongsTo, 0); len(got) != 0 {
		t.Errorf("a revision with children is pruned: %v", got)
	}
}

// TestADuplicateGoes: what belongs to a copy belongs to the one that counts, which is told first; the copy goes when
// nothing belongs to it any more, whatever the limit is.
func TestADuplicateGoes(t *testing.T) {
	original, copied := storedRevision(t, 1, "a", "tom-0"), storedRevision(t, 4, "a", "tom-1")
	copied.Name, copied.UID = "copy", "uid-copy"
	b := storedRevision(t, 5, "b", "tom-2")
	l := logOf(t, "b", original, copied, b)
	if got := belongingTo(l, "a"); got != "tom-0 tom-1" || l.entry(original.Name).children.Len() != 0 {
		t.Errorf("they have %s, and the older one has some of them", got)
	}
	belongsTo, _ := l.storedIn()
	var got []string
	for _, w := range l.writes(belongsTo, nil) {
		got = append(got, w.entry.revision.Name+": "+joined(w.children))
	}
	if want := []string{"copy: tom-0 tom-1", original.Name + ": "}; !slices.Equal(got, want) {
		t.Errorf("stored is %q, want %q", got, want)
	}
	if got := l.surplus(belongsTo, 10); len(got) != 0 {
		t.Errorf("%d go although one still says that it has a child", len(got))
	}

	original.Children = nil
	l = logOf(t, "b", original, copied, b)
	belongsTo, _ = l.storedIn()
	gone := l.surplus(belongsTo, 10)
	if len(gone) != 1 || gone[0].revision.UID != original.UID || l.original(gone[0]) != l.entry("copy") {
		t.Errorf("%v go, want the older one, as what the copy repeats", gone)
	}
}

// TestADuplicateStaysWithoutItsOriginal: a copy goes only while what it is a copy of is there, is ours, and will stay
// so. Of a revision whose labels somebody has taken away its parent lets go.
func TestADuplicateStaysWithoutItsOriginal(t *testing.T) {
	for name, c := range map[string]struct {
		change func(o *v1alpha1.ControllerRevision)
		stale  bool
	}{
		"unchanged": {func(*v1alpha1.ControllerRevision) {}, false},
		"released":  {func(o *v1alpha1.ControllerRevision) { o.OwnerReferences = nil }, true},
		"no labels": {func(o *v1alpha1.ControllerRevision) { o.Labels = nil }, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPasses(t, catSpec)
			p.settle()
			read := p.revisionOf("a")
			changed := read.DeepCopy()
			c.change(changed)
			if !apiequality.Semantic.DeepEqual(read, changed) {
				must(t, p.Raw.Update(t.Context(), changed))
			}
			original, twin := &entry{object: read, revision: p.r.format.Read(read)}, &entry{}
			o := &gathered{parent: p.tom(), log: &revisionLog{duplicates: []duplicate{{twin, original}}}}
			err := p.r.recorder.originalStays(t.Context(), o, twin)
			if errors.Is(err, ownership.ErrStale) != c.stale || err != nil && !c.stale {
				t.Error(err)
			}
		})
	}
}

// TestAnUnreadableRevisionIsKept: nothing is made from it, it is never pruned (E6), and it keeps its children.
func TestAnUnreadableRevisionIsKept(t *testing.T) {
	bad := storedRevision(t, 1, "a", "tom-0")
	bad.ParentPatch.Raw = []byte(`"oops"`)
	l := logOf(t, "b", bad)
	belongsTo, lost := l.storedIn()
	if why := lost[bad.Name]; len(l.Undecodable) != 1 || belongsTo[key("tom-0")] != bad.Name || !strings.HasPrefix(why, "which cannot be read (") {
		t.Errorf("unreadable %v, stored in %v, lost %v", l.Undecodable, belongsTo, lost)
	}
	for _, w := range l.writes(belongsTo, nil) {
		if w.entry != l.newest {
			t.Errorf("%s is to lose its children", w.entry.revision.Name)
		}
	}
	if l.Change != revision.RollForward || l.Number != 2 {
		t.Errorf("%s to %d", l.Change, l.Number)
	}
	if got := l.surplus(nil, 0); len(got) != 0 {
		t.Errorf("it is pruned: %v", got)
	}
}

func joined(c *metacontroller.Claims) string {
	var out []string
	for _, child := range c.Sorted() {
		out = append(out, child.Name)
	}
	return strings.Join(out, " ")
}
