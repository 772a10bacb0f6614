package inspect

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// This file says what a user should know before an undo, besides the diff and the privileges.

// cautions says what should be known before the undo, what it changes apart.
func cautions(u *Undo) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if u.From == nil {
		say("No revision records the spec of %s as it is now, so there will be no way back to it unless its controller records it first.",
			u.Parent)
	}
	if u.To.stored.doubt != "" {
		say("%s", u.To.stored.doubt)
	}
	out = append(out, u.scales()...)
	return append(out, rivals(u.Parent, u.live)...)
}

// scales warns of what a user who goes back to an old template does not expect to change: how many children there are,
// and which. It is part of a revision where a controller records all of spec.
func (u *Undo) scales() []string {
	if u.To.stored.Snapshot == nil {
		return nil
	}
	restored, err := u.To.stored.Snapshot.Restore(u.live)
	if err != nil {
		return nil // aim has said so
	}
	now, err := runtime.DefaultUnstructuredConverter.ToUnstructured(u.live)
	if err != nil {
		return nil
	}
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if was, is := field(now, "replicas"), field(restored, "replicas"); was != is {
		say("The scale is part of %s: spec.replicas goes from %s to %s.", u.To, was, is)
	}
	if was, is := field(now, "selector"), field(restored, "selector"); was != is {
		say("The selector is part of %s: spec.selector goes from %s to %s, and children that it does not match are released.", u.To, was, is)
	}
	return out
}

// field returns a field of the spec in one line.
func field(object map[string]any, name string) string {
	v, found, err := unstructured.NestedFieldNoCopy(object, "spec", name)
	if err != nil || !found {
		return "nothing"
	}
	b, err := json.Marshal(v)
	if err != nil {
		return "something else"
	}
	return string(b)
}

// passedOver names the newer revisions that could have been meant by "the previous one", if only they could be read.
func passedOver(to Entry, h *History) []string {
	var out []string
	for _, e := range h.Entries {
		if e.Unreadable != nil && e.Number > to.Number {
			out = append(out, fmt.Sprintf("%s was passed over: %v.", capital(e.String()), e.Unreadable))
		}
	}
	return out
}

// rivals names other writers that will write the parent again and revert the undo.
func rivals(p Parent, live metav1.Object) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if _, ok := live.GetAnnotations()[corev1.LastAppliedConfigAnnotation]; ok {
		say("%s is managed by kubectl apply: the next apply of a manifest that was not put back as well takes this undo back.", p)
	}
	for _, m := range live.GetManagedFields() {
		if m.Operation == metav1.ManagedFieldsOperationApply && m.Subresource == "" {
			say("%s is managed by server-side apply of %q: its next apply conflicts with this undo, or takes it back.", p, m.Manager)
		}
	}
	if ref := metav1.GetControllerOfNoCopy(live); ref != nil {
		say("%s is controlled by %s %s, which may take this undo back.", p, ref.Kind, ref.Name)
	}
	return out
}
