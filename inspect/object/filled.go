package object

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/podtemplate"
	"github.com/cairn-dev/cairn/revision"
)

// This file finds the revision of a spec that its author left to be filled in. Of a kind that others define the API
// server fills in no pod template: its controller does, in the ReplicaSet or the revision that it makes. So the two
// differ although nothing was edited. Then the controller's own word counts, and after that what the API server makes
// of the template.

// filler does so for one question. It is for one goroutine.
type filler struct {
	// client is nil for kinds whose templates the API server fills in.
	client client.Client
	// parent and filled are the object that was asked about last, and what the API server makes of it.
	parent, filled *unstructured.Unstructured
}

// resolve finds which of revisions has what parent has in the fields of target. It sends no request but one dry run for
// each pod template, and only if nothing else tells. A warning says that this was refused.
func (f *filler) resolve(ctx context.Context, parent *unstructured.Unstructured, target *revision.Target, revisions []revision.Revision) (
	found *revision.Resolution, warnings []string, err error,
) {
	if found, err = compared(parent, target, revisions); err != nil || found.Update != nil || len(revisions) == 0 {
		return found, nil, err
	}
	if r := said(parent, revisions); r != nil {
		known(found, r, "the status says so")
		return found, nil, nil
	}
	if r, err := alike(parent, target, revisions); r != nil || err != nil {
		known(found, r, "it differs in empty fields only")
		return found, nil, err
	}
	if f.client == nil {
		return found, nil, nil
	}
	filled, err := f.fill(ctx, parent)
	if err != nil {
		return found, []string{fmt.Sprintf("Whether a revision is the spec's could not be found out: %v.", err)}, nil
	}
	found, err = compared(filled, target, revisions)
	return found, nil, err
}

// compared finds the revision by its content.
func compared(parent *unstructured.Unstructured, target *revision.Target, revisions []revision.Revision) (*revision.Resolution, error) {
	now, err := target.Snapshot(parent.Object)
	if err != nil {
		return nil, err
	}
	facts := revision.ParentState{UID: parent.GetUID(), Generation: parent.GetGeneration(), Snapshot: now, Uncached: true}
	return revision.Resolve(facts, revisions, nil, false)
}

// known makes a revision that of the spec.
func known(found *revision.Resolution, r *revision.Revision, why string) {
	if r != nil {
		found.Change, found.Update, found.Number, found.Stamp = revision.NoChange, r, r.Number, r.Stamp
		found.Reason = fmt.Sprintf("%s: %s", r.Name, why)
	}
}

// alike returns the newest revision that has what parent has, but for fields that hold nothing. Controllers that are
// written in Go write these into their revisions, as "resources: {}", where users do not.
func alike(parent *unstructured.Unstructured, target *revision.Target, revisions []revision.Revision) (*revision.Revision, error) {
	snapshot, err := target.Snapshot(parent.Object)
	if err != nil {
		return nil, err
	}
	held := func(s *revision.Snapshot) (any, error) {
		var tree map[string]any
		err := s.Into(&tree)
		return filled(tree), err
	}
	now, err := held(snapshot)
	if err != nil {
		return nil, err
	}
	var newest *revision.Revision
	for n := range revisions {
		r := &revisions[n]
		if r.Snapshot == nil || newest != nil && revision.CompareByNumber(*r, *newest) < 0 {
			continue
		}
		if was, err := held(r.Snapshot); err == nil && was != nil && reflect.DeepEqual(was, now) {
			newest = r
		}
	}
	return newest, nil
}

// filled returns a value without what holds nothing: null, {} and [].
func filled(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, field := range v {
			if f := filled(field); f != nil {
				out[key] = f
			}
		}
		if len(out) > 0 {
			return out
		}
		return nil
	case []any:
		var out []any
		for _, element := range v {
			out = append(out, filled(element))
		}
		if len(out) > 0 {
			return out
		}
		return nil
	}
	return value
}

// words are the fields of a status in which controllers say which revision is the spec's, by name or by hash:
// StatefulSets and those of Kruise, Argo Rollouts, Kruise's DaemonSets.
var words = []string{"updateRevision", "currentPodHash", "daemonSetHash"}

// said returns the revision that parent's controller says is the spec's, nil if it does not say. It counts only if the
// status is about the spec as it is.
func said(parent *unstructured.Unstructured, revisions []revision.Revision) *revision.Revision {
	if !Observed(parent) {
		return nil
	}
	for _, field := range words {
		word, _, err := unstructured.NestedString(parent.Object, "status", field)
		if err != nil || word == "" {
			continue
		}
		is := revision.NewInUse(word)
		for n := range revisions {
			if is.Has(revisions[n]) {
				return &revisions[n]
			}
		}
	}
	return nil
}

// Observed reports whether the status of an object says that its controller has seen the spec as it is. It is a number
// or, in Argo Rollouts, a text.
func Observed(parent client.Object) bool {
	seen, found, err := unstructured.NestedFieldNoCopy(untyped(parent).Object, "status", "observedGeneration")
	return err == nil && found && parent.GetGeneration() > 0 && fmt.Sprint(seen) == strconv.FormatInt(parent.GetGeneration(), 10)
}

// fill returns parent with the pod templates that the API server would make of its own: those of ReplicaSets that are
// created with them, without being stored. The error says why it did not.
func (f *filler) fill(ctx context.Context, parent *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if f.parent != nil && f.parent.GetUID() == parent.GetUID() && f.parent.GetResourceVersion() == parent.GetResourceVersion() {
		return f.filled, nil
	}
	tree, err := podtemplate.Each(parent.Object, func(template map[string]any) (map[string]any, error) {
		return f.template(ctx, parent, template)
	})
	if err != nil {
		return nil, err
	}
	f.parent, f.filled = parent, &unstructured.Unstructured{Object: tree}
	return f.filled, nil
}

func (f *filler) template(ctx context.Context, parent *unstructured.Unstructured, template map[string]any) (map[string]any, error) {
	const own = "cairn-dry-run" // never stored
	given, _, err := unstructured.NestedStringMap(template, "metadata", "labels")
	if err != nil {
		return nil, err
	}
	set := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"replicas": int64(0), "template": (&unstructured.Unstructured{Object: template}).DeepCopy().Object,
	}}}
	set.SetGroupVersionKind(ReplicaSetKind)
	set.SetNamespace(parent.GetNamespace())
	if set.GetNamespace() == "" {
		set.SetNamespace(metav1.NamespaceDefault)
	}
	set.SetGenerateName("cairn-dry-run-")
	if err := errors.Join(
		unstructured.SetNestedField(set.Object, "true", "spec", "template", "metadata", "labels", own),
		unstructured.SetNestedField(set.Object, "true", "spec", "selector", "matchLabels", own),
	); err != nil {
		return nil, err
	}
	if err := f.client.Create(ctx, set, client.DryRunAll); err != nil {
		return nil, fmt.Errorf("ask the API server by a dry run what it fills in: %w", err)
	}
	out, _, err := unstructured.NestedMap(set.Object, "spec", "template")
	if err != nil {
		return nil, err
	}
	unstructured.RemoveNestedField(out, "metadata", "labels", own)
	if len(given) == 0 {
		unstructured.RemoveNestedField(out, "metadata", "labels")
	}
	return out, nil
}
