package scenario

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	daemonutil "k8s.io/kubernetes/pkg/controller/daemon/util"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file finds the object that a script means: daemonset web, pod of web on node-1, revision 2 of web.

// reference is what stands in the script.
type reference struct {
	kind   kind
	name   string
	parent string
	node   string
	number int
}

// reference reads KIND NAME, or KIND [NUMBER] of PARENT [on NODE].
func (r *reader) reference() reference {
	ref := r.description()
	if ref.name == "" && ref.parent == "" {
		r.failf("a name is missing")
	}
	return ref
}

// description is a reference that may leave out the name, and means all of the kind then.
func (r *reader) description() reference {
	ref := reference{kind: r.kind(), number: -1}
	if len(r.args) > 1 && r.args[1] == "of" {
		if n, ok := r.number(); ok {
			ref.number = n
		}
	}
	if len(r.args) == 0 {
		return ref
	}
	if !r.is("of") {
		ref.name = r.word("a name")
		return ref
	}
	ref.parent = r.word("the name of a parent")
	if r.is("on") {
		ref.node = r.word("the name of a node")
	}
	return ref
}

func (ref reference) String() string {
	if ref.name != "" {
		return ref.kind.Word + " " + ref.name
	}
	words := []string{ref.kind.Word}
	if ref.parent == "" {
		return ref.kind.Word
	}
	if ref.number >= 0 {
		words = append(words, strconv.Itoa(ref.number))
	}
	words = append(words, "of", ref.parent)
	if ref.node != "" {
		words = append(words, "on", ref.node)
	}
	return strings.Join(words, " ")
}

// find returns the objects that are meant, by name. Those that are going come last.
func (ref reference) find(ctx context.Context, stage Stage) ([]client.Object, error) {
	k, err := ref.kind.full(stage.Client().RESTMapper())
	if err != nil {
		return nil, err
	}
	if ref.name != "" {
		return ref.get(ctx, stage, k)
	}
	all, _, err := list(ctx, stage, k)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(o client.Object) bool { return !ref.means(o) }), nil
}

// get returns the object with the reference's name, if there is one.
func (ref reference) get(ctx context.Context, stage Stage, k kind) ([]client.Object, error) {
	o, err := empty(stage.Client().Scheme(), k.GVK)
	if err != nil {
		return nil, err
	}
	key := types.NamespacedName{Namespace: stage.Namespace(), Name: ref.name}
	if k.Cluster {
		key.Namespace = ""
	}
	switch err := stage.Client().Get(ctx, key, o); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get %s: %w", ref, err)
	}
	return []client.Object{o}, nil
}

// means reports whether an object is the child that a reference without a name describes.
func (ref reference) means(o client.Object) bool {
	owner := metav1.GetControllerOfNoCopy(o)
	if ref.parent != "" && (owner == nil || owner.Name != ref.parent) {
		return false
	}
	if ref.node != "" && nodeOf(o) != ref.node {
		return false
	}
	return ref.number < 0 || numberOf(o) == strconv.Itoa(ref.number)
}

// one returns the one object that is meant. Of several, those that are going do not count.
func (ref reference) one(ctx context.Context, stage Stage) (client.Object, error) {
	found, err := ref.find(ctx, stage)
	if err != nil {
		return nil, err
	}
	if alive := slices.DeleteFunc(slices.Clone(found), going); len(found) > 1 && len(alive) > 0 {
		found = alive
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("%s: %w", ref, errNoSuch)
	case 1:
		return found[0], nil
	}
	return nil, fmt.Errorf("%s: there are %d: %s", ref, len(found), strings.Join(names(found), ", "))
}

// list returns all objects of a kind on the stage, ordered by name, and the resource version of the list.
func list(ctx context.Context, stage Stage, k kind) ([]client.Object, string, error) {
	c := stage.Client()
	k, err := k.full(c.RESTMapper())
	if err != nil {
		return nil, "", err
	}
	var options []client.ListOption
	if !k.Cluster {
		options = append(options, client.InNamespace(stage.Namespace()))
	}
	into, err := emptyList(c, k.GVK)
	if err != nil {
		return nil, "", err
	}
	if err := c.List(ctx, into, options...); err != nil {
		return nil, "", fmt.Errorf("list %s: %w", k.GVR.Resource, err)
	}
	items, err := meta.ExtractList(into)
	if err != nil {
		return nil, "", fmt.Errorf("list %s: %w", k.GVR.Resource, err)
	}
	var out []client.Object
	for _, item := range items {
		if o, ok := item.(client.Object); ok {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b client.Object) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return out, into.GetResourceVersion(), nil
}

func emptyList(c client.Client, gvk schema.GroupVersionKind) (client.ObjectList, error) {
	gvk.Kind += "List"
	if c.Scheme().Recognizes(gvk) {
		made, err := c.Scheme().New(gvk)
		if o, ok := made.(client.ObjectList); ok || err != nil {
			return o, err
		}
	}
	u := &unstructured.UnstructuredList{}
	u.SetGroupVersionKind(gvk)
	return u, nil
}

func going(o client.Object) bool { return o.GetDeletionTimestamp() != nil }

func names(objects []client.Object) []string {
	var out []string
	for _, o := range objects {
		out = append(out, o.GetName())
	}
	return out
}

// nodeOf is the node that a pod is bound to or made for.
func nodeOf(o client.Object) string {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return ""
	}
	name, err := daemonutil.GetTargetNodeName(pod)
	if err != nil {
		return ""
	}
	return name
}

// numberOf is the number of a revision.
func numberOf(o client.Object) string {
	tree, err := treeOf(o)
	if err != nil {
		return ""
	}
	return text(tree["revision"])
}
