package inspect

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/inspect/object"
)

// This file warns of objects that the restored pods need and that do not exist. Users delete a ConfigMap when the
// template no longer names it.

// missing returns a warning for each object that only the restored pods need, and that does not exist. One more names
// the objects that the user may not read.
func (i *Inspector) missing(ctx context.Context, u *Undo) (out []string) {
	to := object.Capital(u.To.String())
	var unread []string
	for _, need := range u.needs {
		o := &metav1.PartialObjectMetadata{}
		o.SetGroupVersionKind(need.Kind)
		key := client.ObjectKey{Name: need.Name}
		if need.Kind.Group == "" { // the classes have no namespace
			if key.Namespace = u.Parent.Namespace; key.Namespace == "" {
				continue // the namespace of the pods is not known
			}
		}
		err := i.client.Get(ctx, key, o)
		name := object.KindName(need.Kind.GroupKind()) + "/" + need.Name
		switch {
		case err == nil:
		case !apierrors.IsNotFound(err):
			unread = append(unread, name)
		case need.Admission:
			out = append(out, fmt.Sprintf("%s needs %s, which does not exist: no pod of it can be created.", to, name))
		default:
			out = append(out, fmt.Sprintf("%s needs %s, which does not exist: pods of it do not start.", to, name))
		}
	}
	if len(unread) > 0 {
		out = append(out, fmt.Sprintf("%s needs %s: whether they exist could not be read.", to, strings.Join(unread, ", ")))
	}
	return out
}
