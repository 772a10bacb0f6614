package inspect

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/inspect/object"
	"github.com/cairn-dev/cairn/revision"
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
	if doubt, _ := u.To.Origin(); doubt != "" {
		say("%s", doubt)
	}
	if paused(u.live) {
		say("%s is paused: the spec is changed, and nothing is rolled out until it is resumed.", u.Parent)
	}
	if u.unfollowed != "" {
		say("%s", u.unfollowed)
	}
	out = append(out, u.scales()...)
	return append(out, rivals(u.Parent, u.live, u.To.stored.Target, u.added)...)
}

// paused reports whether an object says that it is, where Deployments and those who follow them say so.
func paused(o client.Object) bool {
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return false
	}
	is, _, err := unstructured.NestedBool(tree, "spec", "paused")
	return err == nil && is
}

// scales warns of what a user who goes back to an old template does not expect to change: how many children there are,
// and which. It is part of a revision where a controller records all of spec.
func (u *Undo) scales() []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if was, is, err := u.field(u.scale()); err == nil && was != is {
		say("The scale is part of %s: %s goes from %s to %s.", u.To, u.scale(), was, is)
	}
	if u.To.stored.Snapshot != nil {
		if kept := u.To.stored.Snapshot.LeftOut(); len(kept) > 0 {
			say("What looks like a secret is not recorded, and stays as it is: %s.", strings.Join(kept, ", "))
		}
	}
	if was, is, err := u.field(revision.Path{"spec", "selector"}); err == nil && was != is {
		say("The selector is part of %s: spec.selector goes from %s to %s, and children that it does not match are released.", u.To, was, is)
	}
	return out
}

// field returns a field before and after the undo, each in one line.
func (u *Undo) field(path revision.Path) (was, is string, err error) {
	if u.To.stored.Snapshot == nil {
		return "", "", u.To.Unreadable
	}
	restored, err := u.To.stored.Snapshot.Restore(u.live)
	if err != nil {
		return "", "", err // aim has said so
	}
	now, err := runtime.DefaultUnstructuredConverter.ToUnstructured(u.live)
	if err != nil {
		return "", "", err
	}
	return field(now, path), field(restored, path), nil
}

// field returns a field of the spec in one line.
func field(o map[string]any, path revision.Path) string {
	v, found, err := unstructured.NestedFieldNoCopy(o, path...)
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
		if why := h.unwanted(e); why != "" && e.Number > to.Number {
			out = append(out, fmt.Sprintf("%s was passed over: %s.", object.Capital(e.String()), why))
		}
	}
	return out
}
