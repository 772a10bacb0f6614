package inspect

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cairn-dev/cairn/inspect/object"
	"github.com/cairn-dev/cairn/internal/inspecttest"
)

// TestHistory: the current revision is the one whose content the spec has, not the newest, and nothing but the number
// decides the order.
func TestHistory(t *testing.T) {
	ds := inspecttest.Web("web:1")
	first, second := inspecttest.StoredOf(t, inspecttest.Web("web:1"), 1, "aaa"), inspecttest.StoredOf(t, inspecttest.Web("web:2"), 2, "bbb")
	first.Annotations = map[string]string{ChangeCauseAnnotation: "launch"}
	h := readingOf(t, ds, []*corev1.Pod{
		inspecttest.Pod(ds, "p1", "aaa"), inspecttest.Pod(ds, "p2", "bbb"), inspecttest.Pod(ds, "p3", "bbb"), inspecttest.Pod(ds, "p4", "gone"),
	}, second, first).History()

	type line struct {
		Number   int64
		Name     string
		Cause    string
		Current  bool
		Children int
	}
	var got []line
	for _, e := range h.Entries {
		got = append(got, line{e.Number, e.Name, e.ChangeCause, e.Current, e.Children})
		if e.Created.IsZero() {
			t.Errorf("%s has no creation time", e)
		}
	}
	want := []line{{1, "web-aaa", "launch", true, 1}, {2, "web-bbb", "", false, 2}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	inspecttest.ExpectWarnings(t, h.Warnings,
		"The spec is that of revision 1 (web-aaa) again",
		"1 of 4 pods come from no revision")
	if h.Parent.String() != "daemonset.apps/web" {
		t.Errorf("the parent is called %s", h.Parent)
	}
}

func TestWarnings(t *testing.T) {
	old, spec := inspecttest.Web("web:1"), inspecttest.Web("web:2")
	for name, c := range map[string]struct {
		reading *Log
		want    []string
	}{
		"nothing unusual": {readingOf(t, spec, nil, inspecttest.StoredOf(t, old, 1, "aaa"), inspecttest.StoredOf(t, spec, 2, "bbb")), nil},
		"undecodable": {
			readingOf(t, spec, nil, inspecttest.Broken(t, old, 1, "aaa"), inspecttest.StoredOf(t, spec, 2, "bbb")),
			[]string{"Revision 1 (web-aaa) can be neither shown nor restored: the revision's data cannot be read: it has no spec.template"},
		},
		"one number twice": {
			readingOf(t, spec, nil, inspecttest.StoredOf(t, old, 2, "aaa"), inspecttest.StoredOf(t, spec, 2, "bbb"), inspecttest.StoredOf(t, inspecttest.Web("web:3"), 1, "ccc")),
			[]string{"Revisions web-aaa and web-bbb both have number 2", "The spec is that of revision 2 (web-bbb) again"},
		},
		"not recorded": {readingOf(t, spec, nil, inspecttest.StoredOf(t, old, 1, "aaa")), []string{"No revision records the spec as it is now"}},
		"no history":   {readingOf(t, spec, nil), []string{"No revision records the spec as it is now"}},
		"same content": {
			readingOf(t, spec, nil, inspecttest.StoredOf(t, spec, 1, "aaa"), inspecttest.StoredOf(t, spec, 2, "bbb")),
			[]string{"Revisions 2 (web-bbb) and 1 (web-aaa) have the same content"},
		},
	} {
		t.Run(name, func(t *testing.T) { inspecttest.ExpectWarnings(t, c.reading.History().Warnings, c.want...) })
	}
}

func TestUncounted(t *testing.T) {
	r := readingOf(t, inspecttest.Web("web:1"), nil, inspecttest.StoredOf(t, inspecttest.Web("web:1"), 1, "aaa"))
	r.Counts, r.ChildrenErr = nil, errors.New("you may not list pods")
	h := r.History()
	if n := h.Entries[0].Children; n != UnknownCount {
		t.Errorf("%d children", n)
	}
	inspecttest.ExpectWarnings(t, h.Warnings, "The pods could not be counted: you may not list pods.")
}

func TestFind(t *testing.T) {
	h := &History{Parent: object.Parent{Name: "web"}, Entries: []Entry{{Number: 1, Name: "a"}, {Number: 2, Name: "b"}, {Number: 2, Name: "c"}, {Number: 4, Name: "d"}}}
	if e, err := h.Find(4); err != nil || e.Name != "d" {
		t.Errorf("Find(4) is %v, %v", e, err)
	}
	if e, err := h.FindName("c"); err != nil || e.Name != "c" {
		t.Errorf("FindName(c) is %v, %v", e, err)
	}
	_, err := h.Find(2)
	var ambiguous *AmbiguousError
	if !errors.As(err, &ambiguous) || len(ambiguous.Same) != 2 || !strings.Contains(err.Error(), "b, c") {
		t.Errorf("Find(2): %v", err)
	}
	var missing *NotFoundError
	if _, err = h.Find(3); !errors.As(err, &missing) || !strings.Contains(err.Error(), "it has: 1 (a), 2 (b), 2 (c), 4 (d)") {
		t.Errorf("Find(3): %v", err)
	}
	if _, err = h.FindName("e"); !errors.As(err, &missing) || !strings.Contains(err.Error(), `called "e"`) {
		t.Errorf("FindName(e): %v", err)
	}
	if _, err = (&History{}).Find(1); !errors.As(err, &missing) || !strings.Contains(err.Error(), "no history at all") {
		t.Errorf("Find(1) in an empty history: %v", err)
	}
}

// readingOf returns what would be read of ds with those revisions and pods.
func readingOf(t *testing.T, ds *appsv1.DaemonSet, pods []*corev1.Pod, objects ...*appsv1.ControllerRevision) *Log {
	t.Helper()
	all := []client.Object{ds}
	for _, o := range pods {
		all = append(all, o)
	}
	for _, o := range objects {
		all = append(all, o)
	}
	found, err := object.KindsOf(t.Context(), inspecttest.Server(interceptor.Funcs{}, all...), schema.GroupKind{Group: "apps", Kind: "DaemonSet"}, ds)
	if err != nil {
		t.Fatal(err)
	}
	k := found[0]
	r := &Log{Identity: k.Is(), Kind: k, Parent: ds}
	if err := r.read(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.Counts, r.Strays, r.ChildrenErr = k.Count(t.Context(), ds, r.Revisions)
	return r
}

// TestPodsOfADeletedRevision: the hash of a pod names no revision. The pod counts for the newest revision if it has the
// template generation of the DaemonSet.
func TestPodsOfADeletedRevision(t *testing.T) {
	ds := inspecttest.Web("web:2")
	ds.CreationTimestamp = metav1.NewTime(time.Date(2026, 11, 20, 3, 0, 0, 0, time.UTC))
	ds.Annotations = map[string]string{appsv1.DeprecatedTemplateGeneration: "2"}
	pod := func(name, generation string) *corev1.Pod {
		out := inspecttest.Pod(ds, name, "gone")
		out.CreationTimestamp = metav1.NewTime(ds.CreationTimestamp.Add(time.Hour))
		out.GenerateName, out.Labels["pod-template-generation"] = ds.Name+"-", generation
		return out
	}
	h := readingOf(t, ds, []*corev1.Pod{pod("p1", "2"), pod("p2", "1")},
		inspecttest.StoredOf(t, inspecttest.Web("web:1"), 1, "aaa"), inspecttest.StoredOf(t, ds, 2, "bbb")).History()
	if h.Entries[0].Children != 0 || h.Entries[1].Children != 1 {
		t.Errorf("%+v", h.Entries)
	}
	inspecttest.ExpectWarnings(t, h.Warnings, "1 of 2 pods come from no revision")
}

// TestAgeAfterARollback: the parent's last edit of the template dates a current revision whose object does not.
func TestAgeAfterARollback(t *testing.T) {
	ds := inspecttest.Web("web:1")
	h := readingOf(t, ds, nil, inspecttest.StoredOf(t, inspecttest.Web("web:2"), 2, "bbb"), inspecttest.StoredOf(t, ds, 3, "aaa")).History()
	made := h.Current().Created
	edit := func(after time.Duration, subresource, fields string) metav1.ManagedFieldsEntry {
		at := metav1.NewTime(made.Add(after))
		return metav1.ManagedFieldsEntry{Manager: "m", Subresource: subresource, Time: &at, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	ds.ManagedFields = []metav1.ManagedFieldsEntry{
		edit(time.Hour, "", `{"f:spec":{"f:template":{"f:spec":{"f:dnsPolicy":{}}}}}`),
		edit(2*time.Hour, "", `{"f:spec":{"f:template":{"f:spec":{"f:containers":{}}}}}`),
		edit(3*time.Hour, "", `{"f:spec":{"f:updateStrategy":{}}}`),
		edit(4*time.Hour, "status", `{"f:status":{}}`),
	}
	for was, want := range map[int64]time.Duration{0: 0, 1: 2 * time.Hour} {
		h.Current().Was = was
		h.date(ds)
		if got := h.Current().Since.Sub(made); got != want || !h.Entries[0].Since.Equal(h.Entries[0].Created) {
			t.Errorf("was %d: since %s after it was made, want %s", was, got, want)
		}
	}
}
