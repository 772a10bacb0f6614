package object

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file is the error for an object that has no history: often it is kept by another object.

// UnknownKindError says that an object has no history, and that nothing is known of its kind that would have one. There
// is no point in asking again; show the message to the user.
type UnknownKindError struct {
	// Kind is what was asked for.
	Kind schema.GroupKind
	// Controller is what controls the object that was asked for, nil if nothing does or no object was given. The history
	// may be there.
	Controller *metav1.OwnerReference
	// Parents are the resources whose objects are parents of a CompositeController, which keeps their history, sorted.
	Parents []schema.GroupResource
	// Hidden says what may not be read, nil if all may: there may be a history all the same.
	Hidden error
}

var deployments = schema.GroupKind{Group: "apps", Kind: "Deployment"}

// without says why kinds that are often asked for have no history to read.
var without = map[schema.GroupKind]string{
	deployments:                         "keeps its revisions as ReplicaSets, and has none yet",
	{Group: "apps", Kind: "ReplicaSet"}: "keeps no revisions: an edit of its template concerns only pods that are made later",
	{Kind: "ReplicationController"}:     "keeps no revisions: an edit of its template concerns only pods that are made later",
	{Kind: "Pod"}:                       "keeps no revisions",
}

// Unwrap returns what may not be read.
func (e *UnknownKindError) Unwrap() error { return e.Hidden }

// Error says where the history is, as far as that is known, and else where one would be; or which right is missing.
func (e *UnknownKindError) Error() string {
	if e.Hidden != nil {
		return fmt.Sprintf("whether %s has a history is not known, because a right is missing: %v", KindName(e.Kind),
			strings.ReplaceAll(e.Hidden.Error(), "\n", "; "))
	}
	why, ok := without[e.Kind]
	if !ok {
		why = "has no history; to record later edits, create a HistoryPolicy"
	}
	if e.Controller != nil {
		gk := schema.FromAPIVersionAndKind(e.Controller.APIVersion, e.Controller.Kind).GroupKind()
		return fmt.Sprintf("%s %s; ask for the history of %s/%s, which controls this one", KindName(e.Kind), why, KindName(gk), e.Controller.Name)
	}
	if len(e.Parents) == 0 {
		return KindName(e.Kind) + " " + why
	}
	parents := make([]string, 0, len(e.Parents))
	for _, resource := range e.Parents {
		parents = append(parents, resource.String())
	}
	return fmt.Sprintf("%s %s; the parents of CompositeControllers are: %s", KindName(e.Kind), why, strings.Join(parents, ", "))
}

// unknown returns the error about a kind without a log. o is the object that was asked for, nil if none was read, and
// parents are the resources that have a CompositeController. hidden is what may not be read.
func unknown(kind schema.GroupKind, o client.Object, parents []schema.GroupResource, hidden error) error {
	e := &UnknownKindError{Kind: kind, Parents: parents, Hidden: hidden}
	slices.SortFunc(e.Parents, func(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) })
	e.Parents = slices.Compact(e.Parents)
	if o != nil {
		e.Controller = metav1.GetControllerOf(o)
	}
	return e
}
