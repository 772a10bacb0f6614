package revision_test

// No field of a pod template may be forgotten by the comparison: a real change that makes no revision is never rolled
// out (rbg#85). Found by reflection, so that nobody has to keep a list.

import (
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cairn-dev/cairn/revision"
)

// section is a DaemonSet with all or some of its template filled in, and what can be changed in there.
type section struct {
	walker
	ds *appsv1.DaemonSet
}

// whole returns a DaemonSet with every field of its template filled in.
func whole(t tb) *section {
	s := &section{ds: withTemplate(&corev1.PodTemplateSpec{})}
	template := reflect.ValueOf(&s.ds.Spec.Template).Elem()
	s.fill(t, template)
	s.walk(t, "template", template)
	return s
}

// sections returns one DaemonSet for each field of the pod spec, and one for the metadata. They are small, so thousands
// of changes to them are cheap.
func sections(t tb) []*section {
	var all []*section
	add := func(path string, part func(*corev1.PodTemplateSpec) reflect.Value) {
		s := &section{ds: withTemplate(&corev1.PodTemplateSpec{})}
		v := part(&s.ds.Spec.Template)
		s.fill(t, v)
		s.walk(t, path, v)
		all = append(all, s)
	}
	add("metadata", func(p *corev1.PodTemplateSpec) reflect.Value { return reflect.ValueOf(&p.ObjectMeta).Elem() })
	spec := reflect.TypeFor[corev1.PodSpec]()
	for i := range spec.NumField() {
		add("spec."+spec.Field(i).Name, func(p *corev1.PodTemplateSpec) reflect.Value {
			return reflect.ValueOf(&p.Spec).Elem().Field(i)
		})
	}
	return all
}

// wantDifferentRevisions makes the given changes one at a time.
func (s *section) wantDifferentRevisions(t *testing.T, changes []change) {
	t.Helper()
	target, untouched := typedTarget(), s.ds.DeepCopy()
	base := snapshot(t, target, s.ds)
	hash := revision.Hash(base.Data(), nil)
	for _, c := range changes {
		c.during(func() {
			if apiequality.Semantic.DeepEqual(s.ds, untouched) {
				t.Fatalf("%s: the test changed nothing", c.path)
			}
			changed := snapshot(t, target, s.ds)
			if got := revision.Compare(base, changed); got != revision.RuleNone {
				t.Errorf("%s: changed, but equal by rule %s", c.path, got)
			}
			if revision.Hash(changed.Data(), nil) == hash {
				t.Errorf("%s: changed, but named alike", c.path)
			}
		})
	}
	if diff := cmp.Diff(untouched, s.ds); diff != "" {
		t.Fatalf("a change was not taken back, or a snapshot wrote to its parent:\n%s", diff)
	}
}

// There are no exceptions: what is not equal for the API server makes a revision. (creationTimestamp: null, the one
// thing that is dropped, is what encoding/json of Kubernetes 1.33 made of no timestamp; see TestCorpus.)
func TestEveryFieldOfPodTemplateSpecMakesADifferentRevision(t *testing.T) {
	s := whole(t)
	s.wantDifferentRevisions(t, s.values)
	t.Logf("%d leaf fields", len(s.values))
	if len(s.values) < 800 {
		t.Errorf("only %d fields: the walk misses some", len(s.values))
	}
}

// Beyond another value: gone, zero, one more of it, a number that becomes a string.
func TestEveryOtherChangeOfPodTemplateSpecMakesADifferentRevision(t *testing.T) {
	var changes int
	for _, s := range sections(t) {
		s.wantDifferentRevisions(t, s.others)
		changes += len(s.others)
	}
	t.Logf("%d changes", changes)
	if changes < 1400 {
		t.Errorf("only %d changes: the walk misses some", changes)
	}
}

// A pointer to zero is a choice (emptyDir: {}, runAsUser: 0), nil is none.
func TestNilAndPointerToZeroAreDifferent(t *testing.T) {
	// Their zero value is written as null, so nobody can choose it.
	null := []reflect.Type{reflect.TypeFor[*metav1.Time](), reflect.TypeFor[*metav1.FieldsV1]()}
	var pointers, exceptions int
	for _, s := range sections(t) {
		for _, p := range s.pointers {
			pointers++
			if slices.Contains(null, p.value.Type()) {
				exceptions++
				continue
			}
			p.during(func() {
				zero := snapshot(t, typedTarget(), s.ds)
				p.value.SetZero()
				none := snapshot(t, typedTarget(), s.ds)
				if got := revision.Compare(zero, none); got != revision.RuleNone {
					t.Errorf("%s: nil and pointer to zero are equal by rule %s", p.path, got)
				}
				if revision.Hash(zero.Data(), nil) == revision.Hash(none.Data(), nil) {
					t.Errorf("%s: nil and pointer to zero are named alike", p.path)
				}
			})
		}
	}
	t.Logf("%d pointers, %d of them exceptions", pointers, exceptions)
	if pointers < 350 || exceptions > 6 {
		t.Errorf("%d pointers, %d of them exceptions: the walk misses some", pointers, exceptions)
	}
}

// Nobody can tell an empty list from none once it went through an API server (tidb-operator#1076).
func TestNilAndEmptyAreEqual(t *testing.T) {
	var collections int
	for _, s := range sections(t) {
		collections += len(s.collections)
		for _, c := range s.collections {
			c.during(func() {
				empty := snapshot(t, typedTarget(), s.ds)
				c.value.SetZero()
				none := snapshot(t, typedTarget(), s.ds)
				if got := revision.Compare(empty, none); got == revision.RuleNone {
					t.Errorf("%s: nil and empty are different", c.path)
				}
			})
		}
	}
	t.Logf("%d lists and maps", collections)
	if collections < 180 {
		t.Errorf("only %d lists and maps: the walk misses some", collections)
	}
}

// The order of a list decides which container comes first, which rule wins, which argument is which.
func TestListOrderCounts(t *testing.T) {
	for _, s := range sections(t) {
		for _, c := range s.collections {
			if c.value.Kind() != reflect.Slice {
				continue
			}
			c.during(func() {
				two := reflect.MakeSlice(c.value.Type(), 2, 2)
				s.fill(t, two.Index(0))
				s.fill(t, two.Index(1))
				c.value.Set(two)
				forth := snapshot(t, typedTarget(), s.ds)
				reflect.Swapper(c.value.Interface())(0, 1)
				back := snapshot(t, typedTarget(), s.ds)
				if got := revision.Compare(forth, back); got != revision.RuleNone {
					t.Errorf("%s: the order does not count, by rule %s", c.path, got)
				}
			})
		}
	}
}
