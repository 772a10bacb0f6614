package inspect

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
)

// This file is the error for an object whose history does not exist or cannot be read by cairn: most of the time it is
// kept by another object.

// UnknownKindError says that cairn cannot read the history of a kind. There is no point in asking again; show the
// message to the user.
type UnknownKindError struct {
	// Kind is what was asked for.
	Kind schema.GroupKind
	// Controller is what controls the object that was asked for, nil if nothing does or no object was given. The history
	// may be there.
	Controller *metav1.OwnerReference
	// Known are the kinds that can be read, sorted.
	Known []schema.GroupKind
	// Parents are the resources whose objects are parents of a CompositeController, and can be read too, sorted.
	Parents []schema.GroupResource
}

// without says why kinds that are often asked for have no history to read.
var without = map[schema.GroupKind]string{
	{Group: "apps", Kind: "Deployment"}: "keeps its revisions as ReplicaSets, which kubectl rollout reads and cairn does not yet",
	{Group: "apps", Kind: "ReplicaSet"}: "keeps no revisions: an edit of its template concerns only pods that are made later",
	{Kind: "ReplicationController"}:     "keeps no revisions: an edit of its template concerns only pods that are made later",
	{Kind: "Pod"}:                       "keeps no revisions",
}

// Error says where the history is, as far as that is known, and else which kinds have one.
func (e *UnknownKindError) Error() string {
	why, ok := without[e.Kind]
	if !ok {
		why = "keeps no history that cairn reads yet"
	}
	if e.Controller != nil {
		gk := schema.FromAPIVersionAndKind(e.Controller.APIVersion, e.Controller.Kind).GroupKind()
		return fmt.Sprintf("%s %s; ask for the history of %s/%s, which controls this one", kindName(e.Kind), why, kindName(gk), e.Controller.Name)
	}
	known := make([]string, 0, len(e.Known))
	for _, gk := range e.Known {
		known = append(known, kindName(gk))
	}
	for _, resource := range e.Parents {
		known = append(known, resource.String())
	}
	return fmt.Sprintf("%s %s; cairn reads: %s", kindName(e.Kind), why, strings.Join(known, ", "))
}

// unknown returns the error about a kind without a log. o is the object that was asked for, nil if none was read, and
// parents are the resources that have a CompositeController.
func (i *Inspector) unknown(kind schema.GroupKind, o client.Object, parents []schema.GroupResource) error {
	e := &UnknownKindError{Kind: kind, Parents: parents}
	slices.SortFunc(e.Parents, func(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) })
	e.Parents = slices.Compact(e.Parents)
	if o != nil {
		e.Controller = metav1.GetControllerOf(o)
	}
	for gvk := range i.client.Scheme().AllKnownTypes() {
		if _, ok := history.FormatOf(gvk.GroupKind()); ok && !slices.Contains(e.Known, gvk.GroupKind()) {
			e.Known = append(e.Known, gvk.GroupKind())
		}
	}
	slices.SortFunc(e.Known, func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) })
	return e
}
