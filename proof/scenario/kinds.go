package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/kinds"
)

// This file reads kinds: those of the table, whose options create and edit change. What is not in it is written as
// resource.group (catsets.example.com) and made with apply.

// kind is one kind of object.
type kind struct{ kinds.Object }

// group is what faults and watches are about.
func (k kind) group() schema.GroupResource { return k.GVR.GroupResource() }

// The words of the kinds that the verbs know.
var (
	podWord      = kinds.Pod.Word
	revisionWord = kinds.Revision.Word
)

// kindNamed finds a kind by its word, in the singular or plural. Others are resource.group.
func kindNamed(word string) (kind, bool) {
	for _, o := range kinds.Objects() {
		if word == o.Word || word == o.Word+"s" {
			return kind{o}, true
		}
	}
	if resource, group, ok := strings.Cut(word, "."); ok && resource != "" && group != "" {
		return kind{kinds.Object{Word: word, GVR: schema.GroupVersionResource{Group: group, Resource: resource}}}, true
	}
	return kind{}, false
}

// kindOf reads a kind.
func (r *reader) kind() kind {
	word := r.word("a kind")
	k, ok := kindNamed(word)
	if !ok {
		r.failf("%q is no kind; there are: %s, and resource.group for others", word, strings.Join(kindWords(), ", "))
	}
	return k
}

// Word is what a script calls a resource: the word of the table, or resource.group.
func Word(r schema.GroupVersionResource) string {
	for _, o := range kinds.Objects() {
		if o.GVR == r {
			return o.Word
		}
	}
	return r.GroupResource().String()
}

func kindWords() []string {
	var out []string
	for _, o := range kinds.Objects() {
		out = append(out, o.Word)
	}
	return out
}

// full completes a kind that is known by its resource only.
func (k kind) full(mapper meta.RESTMapper) (kind, error) {
	if k.GVK.Kind != "" {
		return k, nil
	}
	gvk, err := mapper.KindFor(k.group().WithVersion(""))
	if err != nil {
		return k, fmt.Errorf("find the kind of %s: %w", k.Word, err)
	}
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return k, fmt.Errorf("find the resource of %s: %w", k.Word, err)
	}
	k.GVK, k.Cluster = gvk, mapping.Scope.Name() == meta.RESTScopeNameRoot
	return k, nil
}

// known reports whether create and edit can read these options.
func (k kind) known(options map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(options)) {
		if _, ok := k.Options[key]; !ok && !strings.ContainsAny(key, ".[") {
			return fmt.Errorf("a %s has no option %s; there are: %s, and any path with a dot, like spec.replicas", k.Word, key,
				strings.Join(slices.Sorted(maps.Keys(k.Options)), ", "))
		}
	}
	return nil
}

// set changes an object as options say, in the order of their keys.
func (k kind) set(o map[string]any, options map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(options)) {
		path, ok := k.Options[key]
		if !ok {
			path = key
		}
		if err := setPath(o, path, valueOf(options[key])); err != nil {
			return fmt.Errorf("set %s: %w", key, err)
		}
	}
	return nil
}

// valueOf reads a value as JSON if it is that, and as a string otherwise. A single - is nothing: the field goes.
func valueOf(text string) any {
	if text == "-" {
		return nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	var value any
	if utiljson.Unmarshal([]byte(text), &value) == nil {
		return value
	}
	return text
}

// typed turns a tree into an object: of its Go type if the scheme has one.
func typed(scheme *runtime.Scheme, gvk schema.GroupVersionKind, tree map[string]any) (client.Object, error) {
	o, err := empty(scheme, gvk)
	if err != nil {
		return nil, err
	}
	if u, ok := o.(*unstructured.Unstructured); ok {
		u.Object = tree
		u.SetGroupVersionKind(gvk)
		return u, nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(tree, o); err != nil {
		return nil, fmt.Errorf("read a %s: %w", gvk.Kind, err)
	}
	return o, nil
}

// empty returns a new object of a kind.
func empty(scheme *runtime.Scheme, gvk schema.GroupVersionKind) (client.Object, error) {
	if scheme.Recognizes(gvk) {
		made, err := scheme.New(gvk)
		if o, ok := made.(client.Object); ok || err != nil {
			return o, err
		}
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u, nil
}

// treeOf is an object as a tree.
func treeOf(o client.Object) (map[string]any, error) {
	if u, ok := o.(*unstructured.Unstructured); ok {
		return u.DeepCopy().Object, nil
	}
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("read %T %s: %w", o, o.GetName(), err)
	}
	return tree, nil
}
