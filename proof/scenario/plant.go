package scenario

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/builder"
)

// This file makes what a controller would make, by somebody else's hand: orphans, duplicates, children of strangers.

// HashLabels are the labels in which revisions say their hash: a DaemonSet's, and a StatefulSet's.
var HashLabels = []string{appsv1.ControllerRevisionHashLabelKey, "controller.kubernetes.io/hash"}

// planted is what a script asks to plant.
type planted struct {
	kind   kind
	name   string
	parent reference
	node   string
	image  string
	// revision is the one that a revision is a copy of, or that a pod says it came from: its number, or its name.
	revision string
	// number is that of a planted revision.
	number int64
	// hash is what the label of a planted revision says; - for no label.
	hash string
	// place is what the annotation of a pod says that is named by revision, "" for none.
	place string
	// owner is "" for what is usual, "none", or KIND/NAME.
	owner string
}

func readPlant(r *reader) action {
	pl := planted{kind: r.kind(), name: r.word("a name")}
	if r.err == nil && pl.kind.Word != podWord && pl.kind.Word != revisionWord {
		r.failf("a %s cannot be planted", pl.kind.Word)
	}
	r.must("of")
	pl.parent = reference{kind: r.kind(), name: r.word("the name of the parent"), number: -1}
	if r.is("on") {
		pl.node = r.word("the name of a node")
	}
	pl.image, _ = r.option("image")
	pl.place, _ = r.option("place")
	pl.revision, _ = r.option("revision")
	number, numbered := r.option("number")
	if n, err := strconv.ParseInt(cmp.Or(number, "0"), 10, 64); err != nil {
		r.failf("number=%s is no number", number)
	} else {
		pl.number = n
	}
	hash, _ := r.option("hash")
	pl.hash = cmp.Or(hash, pl.name)
	if pl.owner, _ = r.option("owner"); pl.owner != "" && pl.owner != none && strings.Count(pl.owner, "/") != 1 {
		r.failf("owner=%s is neither none nor KIND/NAME", pl.owner)
	}
	if r.err == nil && pl.kind.Word == revisionWord && (pl.revision == "" || !numbered) {
		r.failf("a planted revision needs revision=, which it copies, and number=")
	}
	return func(ctx context.Context, p *Player) error { return p.plant(ctx, pl) }
}

// none stands for no owner.
const none = "none"

func (p *Player) plant(ctx context.Context, pl planted) error {
	parent, err := pl.parent.one(ctx, p.stage)
	if err != nil {
		return err
	}
	var source client.Object
	if pl.revision != "" {
		if source, err = revisionOf(pl.parent.name, pl.revision).one(ctx, p.stage); err != nil {
			return err
		}
	}
	var tree map[string]any
	image := pl.kind.Image
	if pl.kind.Word == revisionWord {
		tree, err = pl.copyOf(source)
	} else {
		tree, err = pl.childOf(parent, source)
	}
	if err != nil {
		return err
	}
	if pl.image != "" {
		if err := setPath(tree, image, pl.image); err != nil {
			return err
		}
	}
	if pl.place != "" {
		if err := setPath(tree, "metadata.annotations["+builder.PlaceAnnotation+"]", pl.place); err != nil {
			return err
		}
	}
	owners, err := p.owners(ctx, pl, parent)
	if err != nil {
		return err
	}
	if err := setPath(tree, "metadata.ownerReferences", owners); err != nil {
		return err
	}
	return p.create(ctx, pl.kind, tree)
}

// revisionOf is a revision of a parent by its number, or any by its name.
func revisionOf(parent, which string) reference {
	k, _ := kindNamed(revisionWord)
	if n, err := strconv.Atoi(which); err == nil {
		return reference{kind: k, parent: parent, number: n}
	}
	return reference{kind: k, name: which, number: -1}
}

// copyOf is a revision with the content of another one, and a hash of its own.
func (pl planted) copyOf(source client.Object) (map[string]any, error) {
	tree, err := treeOf(source)
	if err != nil {
		return nil, err
	}
	labels := map[string]any{}
	for key, value := range source.GetLabels() {
		switch {
		case !slices.Contains(HashLabels, key):
			labels[key] = value
		case pl.hash != "-":
			labels[key] = pl.hash
		}
	}
	return map[string]any{
		"metadata": map[string]any{"name": pl.name, "labels": labels},
		"revision": pl.number,
		"data":     tree["data"],
	}, nil
}

// childOf is a pod from a parent's template.
func (pl planted) childOf(parent, revision client.Object) (map[string]any, error) {
	tree, err := treeOf(parent)
	if err != nil {
		return nil, err
	}
	template, err := getPath(tree, "spec.template")
	if err != nil {
		return nil, err
	}
	out, ok := template.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s has no template", pl.parent)
	}
	out = maps.Clone(out)
	if err := setPath(out, "metadata.name", pl.name); err != nil {
		return nil, err
	}
	if pl.node != "" {
		if err := setPath(out, "spec.nodeName", pl.node); err != nil {
			return nil, err
		}
	}
	if revision == nil {
		return out, nil
	}
	hash := revision.GetLabels()[appsv1.ControllerRevisionHashLabelKey]
	if hash == "" {
		hash = revision.GetName()
	}
	return out, setPath(out, "metadata.labels["+appsv1.ControllerRevisionHashLabelKey+"]", hash)
}

// owners are the owner references of what is planted: an orphan pod, a revision of its parent, or a stranger's.
func (p *Player) owners(ctx context.Context, pl planted, parent client.Object) (any, error) {
	k := pl.parent.kind
	switch {
	case pl.owner == none || pl.owner == "" && pl.kind.Word == podWord:
		return nil, nil //nolint:nilnil // no references
	case pl.owner != "":
		word, name, _ := strings.Cut(pl.owner, "/")
		var ok bool
		if k, ok = kindNamed(word); !ok {
			return nil, fmt.Errorf("%q is no kind", word)
		}
		owner, err := reference{kind: k, name: name, number: -1}.one(ctx, p.stage)
		if err != nil {
			return nil, err
		}
		parent = owner
	}
	k, err := k.full(p.stage.Client().RESTMapper())
	if err != nil {
		return nil, err
	}
	ref := metav1.NewControllerRef(parent, k.GVK)
	return []any{map[string]any{
		"apiVersion": ref.APIVersion, "kind": ref.Kind, "name": ref.Name, "uid": string(ref.UID),
		"controller": true, "blockOwnerDeletion": true,
	}}, nil
}
