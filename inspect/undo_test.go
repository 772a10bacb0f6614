package inspect

import (
	"context"
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/inspect/object"
	"github.com/cairn-dev/cairn/internal/inspecttest"
)

// TestPrevious: the previous revision is the newest one that differs from the spec (kubectl takes the second highest
// number, says "rolled back" and changes nothing).
func TestPrevious(t *testing.T) {
	unreadable := errors.New("nobody can read it")
	for name, c := range map[string]struct {
		entries []Entry
		same    map[string]bool
		want    string
	}{
		"the one before":         {entries: []Entry{{Number: 1, Name: "a"}, {Number: 2, Name: "b"}, {Name: "c", Current: true}}, want: "b"},
		"an equivalent between":  {entries: []Entry{{Number: 1, Name: "a"}, {Number: 2, Name: "b"}, {Name: "c", Current: true}}, same: map[string]bool{"b": true}, want: "a"},
		"the current is oldest":  {entries: []Entry{{Name: "a", Current: true}, {Number: 2, Name: "b"}}, want: "b"},
		"the spec is unrecorded": {entries: []Entry{{Number: 1, Name: "a"}, {Number: 2, Name: "b"}}, want: "b"},
		"unreadable":             {entries: []Entry{{Number: 1, Name: "a"}, {Number: 2, Name: "b", Unreadable: unreadable}, {Name: "c", Current: true}}, want: "a"},
		"being deleted":          {entries: []Entry{{Number: 1, Name: "a"}, {Number: 2, Name: "b", Deleting: true}, {Name: "c", Current: true}}, want: "a"},
		"only the current":       {entries: []Entry{{Name: "a", Current: true}}},
		"all equivalent":         {entries: []Entry{{Number: 1, Name: "a"}, {Name: "b", Current: true}}, same: map[string]bool{"a": true}},
		"none":                   {},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := previous(&History{Entries: c.entries}, func(e Entry) (bool, error) { return c.same[e.Name], nil })
			switch {
			case c.want == "":
				if !errors.Is(err, ErrNothingToUndo) {
					t.Errorf("got %v, %v", got, err)
				}
			case err != nil || got.Name != c.want:
				t.Errorf("got %v, %v, want %s", got, err, c.want)
			}
		})
	}
	twins := []Entry{{Number: 1, Name: "a"}, {Number: 2, Name: "b"}, {Number: 2, Name: "c"}, {Number: 3, Name: "d", Current: true}}
	_, err := previous(&History{Entries: twins}, func(Entry) (bool, error) { return false, nil })
	if e, ok := errors.AsType[*AmbiguousError](err); !ok || e.Number != 2 || len(e.Same) != 2 || e.Same[0].Name != "c" {
		t.Errorf("two revisions of one number: %v", err)
	}
	boom := errors.New("boom")
	if _, err := previous(&History{Entries: []Entry{{Number: 1, Name: "a"}}}, func(Entry) (bool, error) { return false, boom }); !errors.Is(err, boom) {
		t.Errorf("an error of the comparison became %v", err)
	}
}

// TestSame: equivalence is decided by content, by the same rules as in a controller, for every revision.
func TestSame(t *testing.T) {
	spec := inspecttest.Web("web:2")
	emptyArgs := inspecttest.Web("web:2")
	emptyArgs.Spec.Template.Spec.Containers[0].Args = []string{}
	r := readingOf(t, spec, nil, inspecttest.StoredOf(t, inspecttest.Web("web:1"), 1, "aaa"), inspecttest.StoredOf(t, emptyArgs, 2, "bbb"), inspecttest.StoredOf(t, spec, 3, "ccc"))
	// A planted stamp makes nothing equal.
	r.Revisions[0].Stamp.ParentUID, r.Revisions[0].Stamp.Generation = spec.UID, spec.Generation
	for n, want := range []bool{false, true, true} {
		got, err := r.same(t.Context(), Entry{UID: r.Revisions[n].UID, stored: r.Revisions[n]})
		if err != nil || got != want {
			t.Errorf("revision %d: %t, %v, want %t", n+1, got, err, want)
		}
	}
}

func TestCautions(t *testing.T) {
	for name, c := range map[string]struct {
		rename string
		from   *Entry
		want   []string
	}{
		"nothing":       {from: &Entry{}},
		"unrecorded":    {want: []string{"there will be no way back"}},
		"name as label": {from: &Entry{}, rename: "aaa"},
		"foreign name": {
			from: &Entry{}, rename: "planted",
			want: []string{`The name of revision 1 (planted) does not go with its hash label "aaa"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			ds := inspecttest.Web("web:2")
			old := inspecttest.StoredOf(t, inspecttest.Web("web:1"), 1, "aaa")
			if c.rename != "" {
				old.Name = c.rename
			}
			h := readingOf(t, ds, nil, old).History()
			inspecttest.ExpectWarnings(t, cautions(&Undo{From: c.from, To: h.Entries[0], live: ds}), c.want...)
		})
	}
}

// TestUnwanted: a revision that differs only by a restart is not a default target, even if it worked.
func TestUnwanted(t *testing.T) {
	restarted := inspecttest.Web("web:2")
	restarted.Spec.Template.Annotations = map[string]string{restartedAt: "2026-11-28T09:00:00Z"}
	h := readingOf(t, restarted, nil, inspecttest.StoredOf(t, inspecttest.Web("web:1"), 1, "aaa"),
		inspecttest.StoredOf(t, inspecttest.Web("web:2"), 2, "bbb"), inspecttest.StoredOf(t, restarted, 3, "ccc")).History()
	h.Entries[1].Good, h.Entries[2].Current = true, true
	for n, want := range []string{"", "it differs from the spec only by a restart", ""} {
		if got := h.unwanted(h.Entries[n]); got != want {
			t.Errorf("%s: %q, want %q", h.Entries[n], got, want)
		}
	}
	h.Entries[0].Failed = "no progress"
	if got := h.unwanted(h.Entries[0]); got != "the rollout to it failed" {
		t.Errorf("failed: %q", got)
	}
}

// TestNeverAvailable: a revision is passed over if its controller knew a good one when it recorded it, and never saw
// all of its children available. It is not if nothing was known.
func TestNeverAvailable(t *testing.T) {
	knows := func(r *appsv1.ControllerRevision, known string) *appsv1.ControllerRevision {
		metav1.SetMetaDataAnnotation(&r.ObjectMeta, history.CompletedRevisionsAnnotation, known)
		return r
	}
	first, second := inspecttest.StoredOf(t, inspecttest.Web("web:1"), 1, "aaa"), inspecttest.StoredOf(t, inspecttest.Web("web:2"), 2, "bbb")
	third, fourth := inspecttest.StoredOf(t, inspecttest.Web("web:3"), 3, "ccc"), inspecttest.StoredOf(t, inspecttest.Web("web:4"), 4, "ddd")
	h := readingOf(t, inspecttest.Web("web:4"), nil, first, knows(second, first.Name), knows(third, first.Name), fourth).History()
	const never = "its children were never all available"
	h.Entries[3].Current = true
	for n, want := range []string{"", never, never, ""} {
		if got := h.unwanted(h.Entries[n]); got != want {
			t.Errorf("%s: %q, want %q", h.Entries[n], got, want)
		}
	}
	third.Annotations = nil
	h = readingOf(t, inspecttest.Web("web:4"), nil, first, second, third, fourth).History()
	if got := h.unwanted(h.Entries[2]); got != "" {
		t.Errorf("nothing was known: %q", got)
	}
}

func TestPassedOver(t *testing.T) {
	no := errors.New("no JSON")
	h := &History{Entries: []Entry{{Number: 1, Name: "a", Unreadable: no}, {Number: 2, Name: "b"}, {Number: 3, Name: "c", Unreadable: no}, {Number: 4, Name: "d"}}}
	inspecttest.ExpectWarnings(t, passedOver(h.Entries[1], h), "Revision 3 (c) was passed over: no JSON.")
}

// TestRivals: an undo that somebody else will take back says so.
func TestRivals(t *testing.T) {
	ds := inspecttest.Web("web:2")
	p := object.Parent{Name: "web"}
	if got := rivals(p, ds, history.DaemonSet().Target(), nil); len(got) != 0 {
		t.Errorf("got %q", got)
	}
	ds.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "{}"}
	ds.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "argocd", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:template":{}}}`)},
		{Manager: "scaler", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`)},
		{Manager: "status", Operation: metav1.ManagedFieldsOperationApply, Subresource: "status"},
		{Manager: "kubectl-edit", Operation: metav1.ManagedFieldsOperationUpdate},
	}
	ds.OwnerReferences = []metav1.OwnerReference{{Kind: "Shop", Name: "corner", Controller: new(true)}}
	inspecttest.ExpectWarnings(t, rivals(p, ds, history.DaemonSet().Target(), nil), "next apply of a manifest", `server-side apply of "argocd"`, "controlled by Shop corner")
}

// TestAltered: what admission makes of an undo is not called the revision. Defaults are no change.
func TestAltered(t *testing.T) {
	for name, c := range map[string]struct {
		image  string
		policy corev1.DNSPolicy
		want   string
	}{
		"as asked":  {image: "web:1"},
		"defaults":  {image: "web:1", policy: corev1.DNSClusterFirst},
		"admission": {image: "registry.example.com/web:1", want: "registry.example.com/web:1"},
	} {
		ds := inspecttest.Web("web:2")
		funcs := interceptor.Funcs{Patch: func(_ context.Context, _ client.WithWatch, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
			stored := inspecttest.Web(c.image)
			stored.Spec.Template.Spec.DNSPolicy = c.policy
			stored.DeepCopyInto(o.(*appsv1.DaemonSet))
			return nil
		}}
		i := New(inspecttest.Server(funcs, ds, inspecttest.StoredOf(t, inspecttest.Web("web:1"), 1, "aaa"), inspecttest.StoredOf(t, ds, 2, "bbb")))
		u, err := i.PlanUndo(t.Context(), ds, 1)
		if err != nil {
			t.Fatal(err)
		}
		a, err := i.Apply(t.Context(), u, true)
		if err != nil || (a.Altered != "") != (c.want != "") || !strings.Contains(a.Altered, c.want) {
			t.Errorf("%s: %v\n%s", name, err, a.Altered)
		}
	}
}
