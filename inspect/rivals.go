package inspect

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/inspect/object"
	"github.com/cairn-dev/cairn/revision"
)

// This file names who else writes the parent, and would take an undo back: tools that keep objects as files say, and
// autoscalers.

// keeper is a tool that keeps objects as a repository or a chart says, and the mark by which its objects are known.
type keeper struct {
	// label or annotation is the key of the mark; value, if it is not empty, the one that the mark must have.
	label, annotation, value string
	// tool is what it is called; sentence says what will happen, for the object and the value of the mark.
	tool, sentence string
}

// keepers are found by the marks that their documentation names. A tool that is not here still shows in managedFields.
var keepers = []keeper{
	{annotation: "meta.helm.sh/release-name", tool: "Helm release", sentence: "%s belongs to the Helm release %s" + byHelm},
	{annotation: "argocd.argoproj.io/tracking-id", tool: "Argo CD", sentence: "%s is managed by Argo CD (%s)" + byArgo},
	{label: "argocd.argoproj.io/instance", tool: "Argo CD application", sentence: "%s is managed by the Argo CD application %s" + byArgo},
	{label: "kustomize.toolkit.fluxcd.io/name", tool: "Flux Kustomization", sentence: "%s is managed by the Flux Kustomization %s" + byFlux},
	{label: "helm.toolkit.fluxcd.io/name", tool: "Flux HelmRelease", sentence: "%s is managed by the Flux HelmRelease %s" + byFlux},
	{label: "app.kubernetes.io/managed-by", value: "Helm", tool: "a release of", sentence: "%s is managed by %s" + byHelm},
}

// What each tool does with an edit that is not its own, and what to do about it.
const (
	byHelm = ": its next upgrade takes this undo back; helm rollback changes the release as well."
	byArgo = ": its next sync takes this undo back, within seconds if it heals itself; revert the commit as well."
	byFlux = ", which takes this undo back at its next reconciliation; suspend it, or revert the commit as well."
)

// rivals names other writers that will write the parent again and revert the undo. Of the tools, the first that is
// found is named: one mark is often beside another one of the same tool. target holds the fields that the undo writes,
// and only those that it adds.
func rivals(p object.Parent, live metav1.Object, target *revision.Target, only []string) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if _, ok := live.GetAnnotations()[corev1.LastAppliedConfigAnnotation]; ok {
		say("%s is managed by kubectl apply: the next apply of a manifest that was not reverted takes this undo back.", p)
	}
	managers := appliers(live, target)
	if len(managers) == 1 {
		say("%s is managed by server-side apply of %q: its next apply takes this undo back.", p, managers[0].Manager)
	} else if len(managers) > 1 {
		say("%s is managed by server-side apply of %q: the next apply of each takes its fields back%s.", p, managers.names(), keeps(only))
	}
	for _, k := range keepers {
		if mark := k.mark(live); mark != "" {
			say(k.sentence, p, mark)
			if strings.HasSuffix(k.sentence, byHelm) && len(managers) == 0 && len(only) > 0 {
				say("An upgrade by Helm takes the fields of the release back%s.", keeps(only))
			}
			break
		}
	}
	if ref := metav1.GetControllerOfNoCopy(live); ref != nil {
		say("%s is controlled by %s %s, which may take this undo back.", p, ref.Kind, ref.Name)
	}
	return out
}

// keeps is a clause about fields that an apply keeps because no manifest had them, empty if there are none.
func keeps(only []string) string {
	const most = 5
	switch n := len(only); {
	case n == 0:
		return ""
	case n > most:
		return fmt.Sprintf(", and keeps %s and %d more", strings.Join(only[:most], ", "), n-most)
	default:
		return ", and keeps " + strings.Join(only, ", ")
	}
}

// mark returns the value of the mark that an object has, empty if it has none.
func (k keeper) mark(o metav1.Object) string {
	found := o.GetLabels()[k.label]
	if k.annotation != "" {
		found = o.GetAnnotations()[k.annotation]
	}
	if k.value != "" && found != k.value {
		return ""
	}
	return found
}

// autoscaling is the kind of what scales others. No other kind of autoscaler is built in.
var autoscaling = schema.GroupVersionKind{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}

// autoscalers names what will change the scale again that an undo changes. They are asked for only then; whoever may
// not list them is not told.
func (i *Inspector) autoscalers(ctx context.Context, u *Undo) []string {
	was, is, err := u.field(u.scale())
	if err != nil || was == is {
		return nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(autoscaling.GroupVersion().WithKind(autoscaling.Kind + "List"))
	if err := i.client.List(ctx, list, client.InNamespace(u.Parent.Namespace)); err != nil {
		return nil
	}
	var out []string
	for n := range list.Items {
		target, _, _ := unstructured.NestedStringMap(list.Items[n].Object, "spec", "scaleTargetRef")
		of := schema.FromAPIVersionAndKind(target["apiVersion"], target["kind"])
		if of.GroupKind() == u.Parent.GroupKind() && target["name"] == u.Parent.Name {
			out = append(out, fmt.Sprintf("HorizontalPodAutoscaler %s scales %s, and will change %s again.",
				list.Items[n].GetName(), u.Parent, u.scale()))
		}
	}
	return out
}
