package recorder

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/cairn-dev/cairn/api/cairn/v1alpha1"
	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/internal/hosting"
	"github.com/cairn-dev/cairn/internal/watching"
	"github.com/cairn-dev/cairn/revision"
)

func policy(t *testing.T, name, text string) *v1alpha1.HistoryPolicy {
	t.Helper()
	p := &v1alpha1.HistoryPolicy{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	if err := yaml.UnmarshalStrict([]byte(text), &p.Spec); err != nil {
		t.Fatal(err)
	}
	return p
}

func resource(group, version, kind, plural string, namespaced bool) watching.Resource {
	gv := schema.GroupVersion{Group: group, Version: version}
	return watching.Resource{Kind: gv.WithKind(kind), Resource: gv.WithResource(plural), Namespaced: namespaced}
}

var (
	served = described{Resource: resource("", "v1", "ConfigMap", "configmaps", true), fields: []string{"apiVersion", "binaryData", "data", "immutable", "kind", "metadata"}}
	scaled = described{Resource: resource("example.com", "v1", "Fleet", "fleets", true), fields: []string{"apiVersion", "kind", "metadata", "spec", "status"}, scaled: true}
)

// What is recorded by default, and what a policy says instead.
func TestWhatIsRecorded(t *testing.T) {
	for name, c := range map[string]struct {
		of                             described
		spec, recorded, ignored, wrong string
	}{
		"no spec":            {of: served, recorded: "[binaryData data immutable]", ignored: "[]"},
		"spec, and a scale":  {of: scaled, recorded: "[spec]", ignored: "[spec.replicas]"},
		"nothing is ignored": {of: scaled, spec: `ignorePaths: []`, recorded: "[spec]", ignored: "[]"},
		"ignored on purpose": {of: scaled, spec: `ignorePaths: [spec.paused]`, recorded: "[spec]", ignored: "[spec.paused]"},
		"named":              {of: scaled, spec: `fieldPaths: [spec.template]`, recorded: "[spec.template]", ignored: "[]"},
		"beside it":          {of: scaled, spec: `ignorePaths: [status.x]`, wrong: "spec.ignorePaths"},
		"one within another": {of: scaled, spec: `fieldPaths: [spec, spec.template]`, wrong: "spec.fieldPaths"},
		"no name":            {of: scaled, spec: `fieldPaths: [spec..x]`, wrong: "spec.fieldPaths[0]"},
		"unknown fields":     {of: described{Resource: scaled.Resource}, wrong: "spec.fieldPaths"},
		"selector":           {of: served, spec: `selector: {matchExpressions: [{key: a, operator: Near}]}`, wrong: "spec.selector"},
		"namespaces":         {of: served, spec: `namespaceSelector: {matchExpressions: [{key: a, operator: Near}]}`, wrong: "spec.namespaceSelector"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := read(policy(t, "p", "resource: {apiVersion: v1, resource: x}\n"+c.spec), c.of)
			if c.wrong != "" {
				var ours *hosting.Error
				if !errors.As(err, &ours) || ours.Reason != InvalidSpec || !strings.Contains(err.Error(), c.wrong) {
					t.Errorf("error %v, want one about %s", err, c.wrong)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(s.target.Paths()); got != c.recorded {
				t.Errorf("records %s, want %s", got, c.recorded)
			}
			if got := fmt.Sprint(s.target.Ignored()); got != c.ignored {
				t.Errorf("ignores %s, want %s", got, c.ignored)
			}
		})
	}
}

// What has a history already, or must not be copied, is refused.
func TestWhatIsNeverRecorded(t *testing.T) {
	for spec, reason := range map[string]string{
		`resource: {apiVersion: v1, resource: secrets}`:                                         SensitiveResource,
		`resource: {apiVersion: apps/v1, resource: controllerrevisions}`:                        HasHistory,
		`resource: {apiVersion: metacontroller.k8s.io/v1alpha1, resource: controllerrevisions}`: HasHistory,
		`resource: {apiVersion: events.k8s.io/v1, resource: events}`:                            HasHistory,
		`resource: {apiVersion: a/b/c, resource: x}`:                                            InvalidSpec,
		"resource: {apiVersion: v1, resource: secrets}\nallowSensitive: true":                   "",
		`resource: {apiVersion: v1, resource: configmaps}`:                                      "",
	} {
		err := validate(policy(t, "p", spec))
		var ours *hosting.Error
		if reason == "" && err != nil || reason != "" && (!errors.As(err, &ours) || ours.Reason != reason) {
			t.Errorf("%s: %v, want %q", spec, err, reason)
		}
	}
	for of, reason := range map[watching.Resource]string{
		resource("apps", "v1", "StatefulSet", "statefulsets", true):           HasHistory,
		resource("apps", "v1", "Deployment", "deployments", true):             HasHistory,
		resource("apps.kruise.io", "v1alpha1", "CloneSet", "clonesets", true): HasHistory,
		resource("argoproj.io", "v1alpha1", "Rollout", "rollouts", true):      HasHistory,
		resource("", "v1", "Node", "nodes", false):                            NamespaceRequired,
	} {
		_, err := read(policy(t, "p", `resource: {apiVersion: v1, resource: x}`), described{Resource: of, fields: []string{"spec"}})
		var ours *hosting.Error
		if !errors.As(err, &ours) || ours.Reason != reason {
			t.Errorf("%s: %v, want %s", of, err, reason)
		}
	}
}

// The older of two policies goes on, whatever versions they name.
func TestRival(t *testing.T) {
	at := func(p *v1alpha1.HistoryPolicy, second int) *v1alpha1.HistoryPolicy {
		p.CreationTimestamp = metav1.NewTime(time.Unix(int64(second), 0))
		return p
	}
	const ingresses = `resource: {apiVersion: networking.k8s.io/v1, resource: ingresses}`
	me := at(policy(t, "me", ingresses), 10)
	gone := at(policy(t, "gone", ingresses), 1)
	gone.DeletionTimestamp = &metav1.Time{Time: time.Unix(11, 0)}
	for name, c := range map[string]struct {
		other *v1alpha1.HistoryPolicy
		want  bool
	}{
		"older":                     {at(policy(t, "a", ingresses), 9), true},
		"older, of another version": {at(policy(t, "a", `resource: {apiVersion: networking.k8s.io/v1beta1, resource: ingresses}`), 9), true},
		"younger":                   {at(policy(t, "a", ingresses), 11), false},
		"as old, first by name":     {at(policy(t, "a", ingresses), 10), true},
		"as old, last by name":      {at(policy(t, "z", ingresses), 10), false},
		"of another group":          {at(policy(t, "a", `resource: {apiVersion: extensions/v1, resource: ingresses}`), 9), false},
		"of no group":               {at(policy(t, "a", `resource: {apiVersion: v1, resource: ingresses}`), 9), false},
		"terminating":               {gone, false},
		"itself":                    {me, false},
	} {
		if got := overlapping(me, []v1alpha1.HistoryPolicy{*c.other}) != nil; got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A revision says what it holds, whose it is, and why the object was changed; and is read by that alone.
func TestFormat(t *testing.T) {
	s, err := read(policy(t, "fleets", `resource: {apiVersion: example.com/v1, resource: fleets}`), scaled)
	if err != nil {
		t.Fatal(err)
	}
	parent := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(3), "image": "a"}}}
	parent.SetGroupVersionKind(scaled.Kind)
	parent.SetName("north")
	parent.SetAnnotations(map[string]string{changeCause: "storm"})
	f := s.format(func(client.Object) map[string]string {
		return map[string]string{history.RecordedByAnnotation: "kubectl-edit"}
	})
	snapshot, err := f.Snapshot(parent)
	if err != nil || string(snapshot.Data()) != `{"spec":{"image":"a"}}` {
		t.Fatalf("%s, %v", snapshot.Data(), err)
	}
	o, err := f.Object(parent, snapshot, nil, 1, revisionStamp)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		history.FieldPathsAnnotation: "spec", history.IgnoredPathsAnnotation: "spec.replicas", changeCause: "storm",
		history.RecordedByAnnotation: "kubectl-edit", history.SecretsAnnotation: "left-out",
	} {
		if got := o.GetAnnotations()[key]; got != want {
			t.Errorf("annotation %s is %q, want %q", key, got, want)
		}
	}
	for key, want := range map[string]string{kindLabel: "Fleet.example.com", nameLabel: "north", v1alpha1.PolicyLabel: "fleets"} {
		if got := o.GetLabels()[key]; got != want {
			t.Errorf("label %s is %q, want %q", key, got, want)
		}
	}
	// The edit that goes back to it has an author of its own.
	want := map[string]any{history.RecordedByAnnotation: "kubectl-edit", history.RecordedAtAnnotation: nil}
	if got := f.Anew(parent); !maps.Equal(got, want) {
		t.Errorf("going back to it writes %v, want %v", got, want)
	}
	selector, err := f.Selector(parent)
	if err != nil || !selector.Matches(set(o.GetLabels())) {
		t.Errorf("%v does not match its own revision, %v", selector, err)
	}
	again, ok := history.Described(o, scaled.Kind)
	if !ok || fmt.Sprint(again.Target().Ignored()) != "[spec.replicas]" || !again.Target().Masked() {
		t.Errorf("%+v", again)
	}
}

// The newest fit first, one stays whatever its size, and what the object is now is not counted.
func TestKeeps(t *testing.T) {
	target, err := revision.FieldPaths(nil, revision.Path{"spec"})
	if err != nil {
		t.Fatal(err)
	}
	entry := func(n int64, size int) revision.Revision {
		o := &unstructured.Unstructured{Object: map[string]any{"spec": strings.Repeat("x", size-len(`{"spec":""}`))}}
		snapshot, err := target.Snapshot(o)
		if err != nil {
			t.Fatal(err)
		}
		return revision.Revision{UID: types.UID(fmt.Sprint(n)), Number: n, Snapshot: snapshot}
	}
	log := []revision.Revision{entry(1, 30), entry(2, 50), entry(3, 100), entry(4, 40), entry(5, 1000)}
	for _, c := range []struct {
		limit int32
		size  int64
		want  int32
	}{{10, 1000, 4}, {3, 1000, 3}, {0, 1000, 0}, {10, 190, 3}, {10, 189, 2}, {10, 140, 2}, {10, 139, 1}, {10, 1, 1}} {
		s := &settings{limit: c.limit, size: c.size}
		if got := s.keeps(log, &log[4]); got != c.want {
			t.Errorf("of 40, 100, 50 and 30 bytes, at most %d and %d bytes: %d are kept, want %d", c.limit, c.size, got, c.want)
		}
	}
}
