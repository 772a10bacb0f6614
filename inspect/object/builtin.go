package object

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/api/cairn/v1alpha1"
	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/history/metacontroller"
	"github.com/cairn-dev/cairn/internal/readiness"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/revision"
)

// This file is the kinds whose log is in apps/v1 ControllerRevisions: package history has their formats or finds them
// out, and their children point at their revision by a label.

// builtin is one of these kinds.
type builtin struct {
	format *history.Apps
	client client.Client
	// ask may ask the API server by a dry run, quiet may not.
	ask, quiet *history.Log
	// filler is for kinds of others.
	filler filler
	// versions are those in which revisions were recorded and which are not the log's own, and recorded says which.
	versions map[string]*version
	recorded recordedElsewhere
}

func newBuiltin(c client.Client, format *history.Apps) *builtin {
	o := history.Options{Client: c, AskServer: true, Asks: 1, Indexed: indexed(c)}
	_, o.Matching = history.FormatOf(format.Parent.GroupKind()) // the others' revisions need not have the parent's labels
	ask := history.New(format, o)
	o.AskServer = false
	return &builtin{
		format: format, client: c, filler: filler{client: c}, recorded: recordedElsewhere{},
		ask: ask, quiet: history.New(format, o),
	}
}

func (b *builtin) Is() Identity {
	paths := b.format.Target().Paths()
	child, children := "", ""
	switch kinds := b.format.Children; len(kinds) {
	case 0:
	case 1:
		child = strings.ToLower(kinds[0].Kind)
		children = child + "s"
	default:
		child, children = "child", "children"
	}
	return Identity{
		GroupVersionKind: b.format.Parent,
		Objects:          appsv1.SchemeGroupVersion.WithKind("ControllerRevision").GroupKind(),
		Child:            child,
		Children:         children,
		Runs:             b.format.Runs,
		Part:             paths[0][len(paths[0])-1],
		Target:           b.format.Target(),
		Foreign:          b.format.Foreign,
	}
}

// childless reports whether nobody but the author of the controller knows what is made from a revision.
func (b *builtin) childless() bool { return len(b.format.Children) == 0 }

func (b *builtin) Blank() client.Object { return b.format.NewParent() }

func (b *builtin) Convert(parent client.Object) (client.Object, error) {
	into := b.Blank()
	if reflect.TypeOf(into) == reflect.TypeOf(parent) {
		return parent, nil
	}
	raw, err := json.Marshal(parent)
	if err != nil {
		return nil, err
	}
	return into, json.Unmarshal(raw, into)
}

func (b *builtin) List(ctx context.Context, parent client.Object) ([]Stored, error) {
	found, err := b.ask.ListObjects(ctx, parent)
	if err != nil {
		return nil, err
	}
	out := make([]Stored, 0, len(found))
	for _, o := range found {
		if stored, ok := o.(*appsv1.ControllerRevision); ok && b.format.Foreign && holdsAnother(stored, b.format.Parent.Kind) {
			continue
		}
		r, target := b.ask.Revision(o), b.format.Target()
		var left error
		if own := b.own(o); own != nil { // what it lacks was not recorded, and is not to be removed by going back to it
			r, target = own.Read(o), own.Target()
			if o.GetLabels()[v1alpha1.PolicyLabel] == "" { // a policy records what others act on: its paths can be edited
				_, left = b.format.Target().As(target)
			}
		}
		s := Stored{Revision: r, Object: o, Target: target, Left: left}
		if v, err := b.in(ctx, parent, o); r.Err == nil && err != nil {
			s.Snapshot, s.Err = nil, &revision.UndecodableError{Revision: r.Name, Err: err}
		} else if v != nil {
			s.Kind, s.Parent = v, v.parent
			b.recorded[r.UID] = v
		}
		s.Origin = sync.OnceValues(func() (doubt, unverified string) { return b.origin(parent, r, o) })
		out = append(out, s)
	}
	return out, nil
}

// origin says why a revision may not come from a controller, or why that cannot be told; both are empty for one that
// does.
func (b *builtin) origin(parent client.Object, r revision.Revision, o client.Object) (warning, unverified string) {
	name := RevisionName(r.Number, r.Name)
	if r.Hash != "" && !strings.HasSuffix(r.Name, "-"+r.Hash) && revision.LabelValue(r.Name) != r.Hash {
		return fmt.Sprintf("The name of %s does not go with its hash label %q; perhaps no controller made it, so look at the diff.",
			name, r.Hash), ""
	}
	stored, ok := o.(*appsv1.ControllerRevision)
	if !ok {
		return "", ""
	}
	switch genuine, known := b.format.Genuine(parent, stored); {
	case genuine, !known && r.Err != nil:
		return "", ""
	case known:
		return fmt.Sprintf("The name of %s does not follow from its content; perhaps no controller made it, so look at the diff.", name), ""
	default:
		return "", unproven(name)
	}
}

// unproven is a sentence about a revision whose name neither proves nor disproves that a controller recorded it.
func unproven(name string) string {
	return fmt.Sprintf("The name of %s does not show whether it comes from a controller, so look at the diff.", name)
}

// own returns the format that a revision describes, if it holds other fields than the rest of the log: somebody changed
// what is recorded. It is nil for the others.
func (b *builtin) own(o client.Object) *history.Apps {
	if _, fixed := history.FormatOf(b.format.Parent.GroupKind()); fixed {
		return nil // these copy all annotations of their parents
	}
	own, ok := history.Described(o, b.format.Parent)
	if !ok || maps.Equal(own.Description(), b.format.Description()) {
		return nil
	}
	own.HashLabel = b.format.HashLabel
	return own
}

// resolve asks the API server as well, because it is the only authority on defaults; if it cannot answer, snapshots
// that only it can compare count as different.
func (b *builtin) Resolve(ctx context.Context, parent client.Object, target *revision.Target, revisions []revision.Revision) (
	*revision.Resolution, []string, error,
) {
	found, warnings, err := b.resolveOwn(ctx, parent, target, b.ownVersion(revisions))
	if err != nil {
		return nil, nil, err
	}
	more, err := b.resolveEach(ctx, found, revisions)
	return found, append(warnings, more...), err
}

func (b *builtin) resolveOwn(ctx context.Context, parent client.Object, target *revision.Target, revisions []revision.Revision) (
	*revision.Resolution, []string, error,
) {
	if b.format.Foreign {
		found, warnings, err := b.filler.resolve(ctx, untyped(parent), target, revisions)
		if err != nil || found.Update != nil || len(warnings) > 0 {
			return found, warnings, err
		}
	}
	var warnings []string
	v, err := b.ask.Resolve(ctx, parent, revisions)
	if err != nil && !errors.Is(err, history.ErrStale) && ctx.Err() == nil {
		asked := err
		if v, err = b.quiet.Resolve(ctx, parent, revisions); err == nil {
			warnings = append(warnings, fmt.Sprintf("The API server could not be asked which revision is the spec's: %v.", asked))
		}
	}
	if err != nil {
		return nil, nil, err
	}
	for _, refused := range v.Refused {
		warnings = append(warnings, fmt.Sprintf("Whether a revision is the spec's could not be found out: %v.", refused))
	}
	if n := len(v.Unasked); n > 0 && v.Update == nil {
		warnings = append(warnings, fmt.Sprintf("%d revisions lack what may be defaults by now, and the API server was not asked about each: "+
			"one of them may be the spec's.", n))
	}
	return v.Resolution, warnings, nil
}

// count looks at the metadata of the children only: their content plays no part, and there may be thousands.
func (b *builtin) Count(ctx context.Context, parent client.Object, log []Stored) ([]int, int, error) {
	if b.childless() {
		return nil, 0, nil
	}
	counts, unowned := make([]int, len(log)), 0
	for _, kind := range b.format.Children {
		var found metav1.PartialObjectMetadataList
		if err := b.listChildren(ctx, parent, kind, &found); err != nil {
			return nil, 0, err
		}
		for n := range found.Items {
			switch of := b.belongs(parent, &found.Items[n], log); of {
			case foreign:
			case Stray:
				unowned++
			default:
				counts[of]++
			}
		}
	}
	return counts, unowned, nil
}

func (b *builtin) Members(ctx context.Context, parent client.Object, log []Stored) (*Members, error) {
	minReady, err := minReadyOf(parent)
	if err != nil {
		return nil, err
	}
	out := &Members{}
	for _, kind := range b.format.Children {
		var found unstructured.UnstructuredList
		if err := b.listChildren(ctx, parent, kind, &found); err != nil {
			return nil, err
		}
		ready := readiness.Rule{MinReady: minReady} // what is no pod is ready once it exists, as for package builder
		if kind == corev1.SchemeGroupVersion.WithKind("Pod") {
			ready = PodsReady(minReady)
		}
		for n := range found.Items {
			child := &found.Items[n]
			of := b.belongs(parent, child, log)
			if of == foreign {
				continue
			}
			out.Children = append(out.Children, Member{
				Child:  metacontroller.Child{GroupKind: kind.GroupKind(), Name: child.GetName()},
				Object: child, Of: of, Rolled: !b.format.Runs, Ready: ready,
			})
		}
	}
	return out, nil
}

// PodsReady is when a pod is available.
func PodsReady(minReady time.Duration) readiness.Rule {
	return readiness.Rule{MinReady: minReady, Checks: []readiness.Check{
		{Type: string(corev1.PodReady), Status: new(string(corev1.ConditionTrue))},
	}}
}

// minReadyOf returns how long a child must have been ready, which all of these kinds say in one field.
func minReadyOf(parent client.Object) (time.Duration, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(parent)
	if err != nil {
		return 0, err
	}
	seconds, _, err := unstructured.NestedInt64(fields, "spec", "minReadySeconds")
	return time.Duration(seconds) * time.Second, err
}

func (b *builtin) listChildren(ctx context.Context, parent client.Object, kind schema.GroupVersionKind, into interface {
	client.ObjectList
	SetGroupVersionKind(gvk schema.GroupVersionKind)
},
) error {
	selector, err := b.format.Selector(parent)
	if err != nil {
		return err
	}
	if b.format.Runs {
		selector = labels.Everything()
	}
	kind.Kind += "List"
	into.SetGroupVersionKind(kind)
	return b.client.List(ctx, into, client.InNamespace(parent.GetNamespace()), client.MatchingLabelsSelector{Selector: selector})
}

// instantiated is the annotation of a Job that a user created from a CronJob.
const instantiated = "cronjob.kubernetes.io/instantiate"

// The results of belongs for an object without a revision in the log: a child of no revision, or no child.
const (
	Stray   = -1
	foreign = -2
)

// belongs returns the index of the revision that a child was made from. Children point at it by its hash or, where it
// has no hash label, by its name. A format may recognize children of the newest revision otherwise. log is oldest
// first.
func (b *builtin) belongs(parent, child client.Object, log []Stored) int {
	if !ownership.OwnerOf(parent, b.format.Parent.GroupKind()).Controls(child) {
		return foreign
	}
	if b.format.Runs && child.GetAnnotations()[instantiated] == "manual" { // kubectl create job --from
		return foreign
	}
	if len(log) > 0 && b.format.OfNewest != nil && b.format.OfNewest(parent, child) {
		return len(log) - 1
	}
	made := revision.NewInUse(child.GetLabels()[b.format.ChildLabel])
	return slices.IndexFunc(log, func(s Stored) bool { return made.Has(s.Revision) })
}
