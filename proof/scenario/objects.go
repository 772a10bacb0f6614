package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/kinds"
)

// This file holds what a user does to objects.

var objectVerbs = map[string]verb{
	"create":  {"create KIND NAME [OPTION=VALUE...], or create {JSON}", readCreate},
	"apply":   {"apply SECTION", readApply},
	"edit":    {"edit OBJECT OPTION=VALUE...", readEdit},
	"patch":   {"patch OBJECT {JSON}", readPatch},
	"relabel": {"relabel OBJECT LABEL=VALUE...", readRelabel},
	"scale":   {"scale OBJECT to NUMBER", readScale},
	"undo":    {"undo KIND NAME [to=NUMBER|REVISION]", readUndo},
	"delete":  {"delete OBJECT [cascade=background|foreground|orphan|unsaid] [grace=SECONDS]", readDelete},
}

func readCreate(r *reader) action {
	if len(r.args) == 1 && strings.HasPrefix(r.args[0], "{") {
		return readCreateJSON(r)
	}
	k := r.kind()
	name := r.word("a name")
	options := r.rest()
	if r.err == nil && k.New == nil {
		r.failf("%s cannot be created this way: write a manifest and apply it", k.Word)
	}
	if err := k.known(options); r.err == nil && err != nil {
		r.err = err
	}
	return func(ctx context.Context, p *Player) error {
		tree := k.New(name)
		if err := k.set(tree, options); err != nil {
			return err
		}
		return p.create(ctx, k, tree)
	}
}

func readCreateJSON(r *reader) action {
	tree := map[string]any{}
	if err := utiljson.Unmarshal([]byte(r.word("a manifest")), &tree); err != nil {
		r.failf("read the manifest: %w", err)
	} else if err := complete(tree); err != nil {
		r.failf("%w", err)
	}
	return func(ctx context.Context, p *Player) error {
		tree := runtime.DeepCopyJSON(tree)
		k, err := p.kindOf(tree)
		if err != nil {
			return err
		}
		return p.create(ctx, k, tree)
	}
}

// create makes an object from a tree.
func (p *Player) create(ctx context.Context, k kind, tree map[string]any) error {
	c := p.stage.Client()
	o, err := typed(c.Scheme(), k.GVK, tree)
	if err != nil {
		return err
	}
	if !k.Cluster {
		o.SetNamespace(p.stage.Namespace())
	}
	return c.Create(ctx, o)
}

func readApply(r *reader) action {
	name := r.word("the name of a section")
	text, err := file(r.files, name)
	if r.err == nil && err != nil {
		r.err = err
	}
	if _, err := manifests(text); r.err == nil && err != nil {
		r.failf("section %s: %w", name, err)
	}
	return func(ctx context.Context, p *Player) error {
		trees, err := manifests(text)
		if err != nil {
			return err
		}
		for _, tree := range trees {
			if err := p.apply(ctx, tree); err != nil {
				return err
			}
		}
		return nil
	}
}

// manifests reads YAML documents.
func manifests(text string) (out []map[string]any, err error) {
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), len(text)+1)
	for {
		var tree map[string]any
		if err := decoder.Decode(&tree); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, fmt.Errorf("read a manifest: %w", err)
		}
		if len(tree) > 0 {
			if err := complete(tree); err != nil {
				return nil, err
			}
			out = append(out, integers(tree).(map[string]any))
		}
	}
}

// complete reports what a manifest does not say of what it makes.
func complete(tree map[string]any) error {
	u := unstructured.Unstructured{Object: tree}
	if u.GetKind() == "" || u.GetAPIVersion() == "" || u.GetName() == "" {
		return errors.New("a manifest needs apiVersion, kind and metadata.name")
	}
	return nil
}

// integers makes whole numbers int64, which is what conversions expect.
func integers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for k := range v {
			v[k] = integers(v[k])
		}
	case []any:
		for i := range v {
			v[i] = integers(v[i])
		}
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	}
	return value
}

// apply creates an object, or merges a manifest into the one that is there.
func (p *Player) apply(ctx context.Context, tree map[string]any) error {
	k, err := p.kindOf(tree)
	if err != nil {
		return err
	}
	ref := reference{kind: k, name: (&unstructured.Unstructured{Object: tree}).GetName()}
	found, err := ref.find(ctx, p.stage)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return p.create(ctx, k, tree)
	}
	body, err := json.Marshal(tree)
	if err != nil {
		return err
	}
	return p.stage.Client().Patch(ctx, found[0], client.RawPatch(types.MergePatchType, body))
}

// kindOf is the kind of a manifest.
func (p *Player) kindOf(tree map[string]any) (kind, error) {
	gvk := (&unstructured.Unstructured{Object: tree}).GroupVersionKind()
	mapping, err := p.stage.Client().RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return kind{}, fmt.Errorf("find the resource of %s: %w", gvk.Kind, err)
	}
	return kind{kinds.Object{
		Word: strings.ToLower(gvk.Kind), GVK: gvk, GVR: mapping.Resource, Cluster: mapping.Scope.Name() == meta.RESTScopeNameRoot,
	}}, nil
}

func readEdit(r *reader) action {
	ref := r.reference()
	options := r.rest()
	if r.err == nil && len(options) == 0 {
		r.failf("there is nothing to edit")
	}
	if err := ref.kind.known(options); r.err == nil && err != nil {
		r.err = err
	}
	return func(ctx context.Context, p *Player) error { return p.edit(ctx, ref, options) }
}

// edit reads an object, changes it and writes it, and does so again if somebody else was faster, as an editor would.
func (p *Player) edit(ctx context.Context, ref reference, options map[string]string) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		o, err := ref.one(ctx, p.stage)
		if err != nil {
			return err
		}
		k, err := ref.kind.full(p.stage.Client().RESTMapper())
		if err != nil {
			return err
		}
		tree, err := treeOf(o)
		if err != nil {
			return err
		}
		if err := k.set(tree, options); err != nil {
			return err
		}
		changed, err := typed(p.stage.Client().Scheme(), k.GVK, tree)
		if err != nil {
			return err
		}
		return p.stage.Client().Update(ctx, changed)
	})
}

func readPatch(r *reader) action {
	ref := r.reference()
	patch := r.word("a JSON patch")
	if r.err == nil && !json.Valid([]byte(patch)) {
		r.failf("%s is no JSON", patch)
	}
	return func(ctx context.Context, p *Player) error { return p.merge(ctx, ref, []byte(patch)) }
}

func (p *Player) merge(ctx context.Context, ref reference, patch []byte) error {
	o, err := ref.one(ctx, p.stage)
	if err != nil {
		return err
	}
	return p.stage.Client().Patch(ctx, o, client.RawPatch(types.MergePatchType, patch))
}

func readRelabel(r *reader) action {
	ref := r.reference()
	options := r.rest()
	if r.err == nil && len(options) == 0 {
		r.failf("there is no label")
	}
	return func(ctx context.Context, p *Player) error {
		labels := map[string]*string{}
		for key, value := range options {
			if labels[key] = &value; value == "-" {
				labels[key] = nil
			}
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}})
		if err != nil {
			return err
		}
		return p.merge(ctx, ref, patch)
	}
}

func readScale(r *reader) action {
	ref := r.reference()
	r.must("to")
	n := r.count("the number of replicas")
	return func(ctx context.Context, p *Player) error {
		return p.merge(ctx, ref, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, n))
	}
}

// propagation are the ways to delete, as kubectl calls them, and the one that the API server chooses if nobody says.
var propagation = map[string]metav1.DeletionPropagation{
	"": metav1.DeletePropagationBackground, "background": metav1.DeletePropagationBackground,
	"foreground": metav1.DeletePropagationForeground, "orphan": metav1.DeletePropagationOrphan,
	"unsaid": "",
}

func readDelete(r *reader) action {
	ref := r.reference()
	cascade, _ := r.option("cascade")
	policy, ok := propagation[cascade]
	if !ok {
		r.failf("cascade=%s is no way to delete", cascade)
	}
	grace := r.numeric("grace", -1)
	return func(ctx context.Context, p *Player) error {
		o, err := ref.one(ctx, p.stage)
		if err != nil {
			return err
		}
		var options []client.DeleteOption
		if policy != "" {
			options = append(options, client.PropagationPolicy(policy))
		}
		if grace >= 0 {
			options = append(options, client.GracePeriodSeconds(grace))
		}
		return p.stage.Client().Delete(ctx, o, options...)
	}
}
