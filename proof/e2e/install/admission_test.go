package install

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/api/cairn/v1alpha1"
	"github.com/cairn-dev/cairn/deploy"
	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/inspect"
)

// This file is about deploy/admission, as the chart installs it: what a tenant may do to revisions, who may do
// everything that RBAC can grant in a namespace.

const team = "team"

// guarded is a cluster with the chart, and its namespace team.
type guarded struct {
	*testing.T

	admin, tenant, manager client.Client
	web                    *appsv1.DaemonSet
}

// revisionsAreKept from people, and from nobody else.
func revisionsAreKept(t *testing.T) {
	g := newGuarded(t)
	stored := g.revisionOf(g.web)
	g.takesEffect()
	t.Run("planted", g.planted)
	t.Run("laundered", g.laundered)
	t.Run("changed", func(t *testing.T) { g.changed(t, stored) })
	t.Run("of Metacontroller's API", g.metacontroller)
	t.Run("pods that are given to a controller", g.given)
	t.Run("accounts that controllers name", g.accounts)
	t.Run("whom it does not stop", func(t *testing.T) { g.others(t, stored) })
}

func newGuarded(t *testing.T) *guarded {
	t.Helper()
	s := cluster(t)
	connect := func(cfg *rest.Config, err error) client.Client {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		c, err := client.New(cfg, client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	g := &guarded{
		T: t, admin: connect(s.Config(), nil), tenant: connect(s.ConfigFor("tina")),
		manager: connect(s.ServiceAccountConfig(t.Context(), deploy.Namespace, deploy.ServiceAccount)),
	}
	labels := map[string]string{"app": "web"}
	g.web = &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "web"},
		Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
		}},
	}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team}},
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "all"}, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "create", "update", "patch", "delete"},
		}}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "all"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "all"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "tina"}},
		},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "team:controllers"}, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"metacontroller.k8s.io", "cairn.dev"}, Verbs: []string{"create", "update"},
			Resources: []string{"compositecontrollers", "decoratorcontrollers", "historypolicies"},
		}}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "team:controllers"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "team:controllers"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "tina"}},
		},
		g.web,
	} {
		if err := g.admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// within waits until something is so.
func (g *guarded) within(what string, is func(context.Context) (bool, error)) {
	g.Helper()
	if err := wait.PollUntilContextTimeout(g.Context(), 100*time.Millisecond, time.Minute, true, is); err != nil {
		g.Fatalf("%s: %v", what, err)
	}
}

// revisionOf waits for the first revision of a set.
func (g *guarded) revisionOf(ds *appsv1.DaemonSet) *appsv1.ControllerRevision {
	g.Helper()
	var list appsv1.ControllerRevisionList
	g.within("a revision of "+ds.Name, func(ctx context.Context) (bool, error) {
		err := g.admin.List(ctx, &list, client.InNamespace(team))
		return len(list.Items) > 0, err
	})
	return &list.Items[0]
}

// orphan is a revision as somebody plants it.
func orphan(owners ...metav1.OwnerReference) *appsv1.ControllerRevision {
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: team, GenerateName: "web-", Labels: map[string]string{"app": "web"}, OwnerReferences: owners,
		},
		Data: runtime.RawExtension{Raw: []byte(`{"spec":{"template":{"$patch":"replace","spec":{"hostPID":true}}}}`)}, Revision: 7,
	}
}

// takesEffect waits until the API server has read the policies.
func (g *guarded) takesEffect() {
	g.Helper()
	g.within("the policies take effect", func(ctx context.Context) (bool, error) {
		for _, o := range described() {
			if !apierrors.IsForbidden(g.tenant.Create(ctx, o, client.DryRunAll)) {
				return false, nil
			}
		}
		return apierrors.IsForbidden(g.tenant.Create(ctx, g.pod(), client.DryRunAll)) && apierrors.IsForbidden(g.tenant.Create(ctx, orphan(), client.DryRunAll)) &&
			apierrors.IsForbidden(g.tenant.Create(ctx, composite(), client.DryRunAll)), nil
	})
}

// refused fails the test unless the policy said so, in words that tell whom to ask.
func refused(t *testing.T, what string, err error) {
	t.Helper()
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "by controllers; whoever has to do it by hand needs the verb override on ") {
		t.Errorf("%s: %v", what, err)
	}
}

// allowed fails the test if there is an error.
func allowed(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

func (g *guarded) planted(t *testing.T) {
	t.Helper()
	of := func(apiVersion, kind string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: "web", UID: g.web.UID, Controller: new(true)}
	}
	refused(t, "an orphan", g.tenant.Create(t.Context(), orphan()))
	refused(t, "a forged owner", g.tenant.Create(t.Context(), orphan(of("apps/v1", "DaemonSet"))))
	refused(t, "a forged owner", g.tenant.Create(t.Context(), orphan(of("apps/v1", "StatefulSet"))))
	for _, apiVersion := range []string{"apps/v2", "extensions/v1beta1"} {
		refused(t, "a forged owner", g.tenant.Create(t.Context(), orphan(of(apiVersion, "DaemonSet"))))
	}
	for _, apiVersion := range []string{"batch/v1", "batch/v1beta1"} { // its controller would release it
		refused(t, "a CronJob's, labelled as the set's", g.tenant.Create(t.Context(), orphan(of(apiVersion, "CronJob"))))
	}
	for _, label := range []string{v1alpha1.PolicyLabel, history.CronJobLabel, "cairn.dev/recorded-kind", "cairn.dev/recorded-name"} {
		o := orphan(of("v1", "ConfigMap"))
		o.Labels[label] = "x"
		refused(t, label, g.tenant.Create(t.Context(), o))
	}
	allowed(t, "another controller's", g.tenant.Create(t.Context(), orphan(of("apps.kruise.io/v1beta1", "StatefulSet"))))
}

// laundered tries to have the garbage collector take the owner away from a revision, which would be adopted then.
func (g *guarded) laundered(t *testing.T) {
	t.Helper()
	laundry := metav1.ObjectMeta{Namespace: team, Name: "laundry"}
	for _, owner := range []client.Object{&corev1.ConfigMap{ObjectMeta: laundry}, &networkingv1.NetworkPolicy{ObjectMeta: laundry}} {
		allowed(t, "an owner", g.tenant.Create(t.Context(), owner))
		kind, err := g.tenant.GroupVersionKindFor(owner)
		if err != nil {
			t.Fatal(err)
		}
		planted := orphan(*metav1.NewControllerRef(owner, kind))
		allowed(t, "a revision of its own", g.tenant.Create(t.Context(), planted))
		witness := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: team, GenerateName: "witness-", OwnerReferences: planted.OwnerReferences,
		}}
		allowed(t, "a witness", g.tenant.Create(t.Context(), witness))
		g.collectorSees()
		allowed(t, "orphan them", g.tenant.Delete(t.Context(), owner, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
		g.within("the garbage collector orphans", func(ctx context.Context) (bool, error) {
			err := g.admin.Get(ctx, client.ObjectKeyFromObject(witness), witness)
			return len(witness.OwnerReferences) == 0, err
		})
		if err := g.admin.Get(t.Context(), client.ObjectKeyFromObject(planted), planted); err != nil || metav1.GetControllerOf(planted) == nil {
			t.Errorf("an orphan of a %s, %v: %+v", kind.Kind, err, planted.OwnerReferences)
		}
		allowed(t, "an administrator cleans up", g.admin.Delete(t.Context(), planted))
		g.within("the owner goes", func(ctx context.Context) (bool, error) {
			err := g.admin.Get(ctx, client.ObjectKeyFromObject(owner), owner)
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		})
	}
}

// collectorSees waits until the garbage collector has seen the revisions that exist: it deletes a later one whose owner
// does not exist. It orphans only children that it has seen, and deletes the rest.
func (g *guarded) collectorSees() {
	last := orphan(metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "absent", UID: "absent", Controller: new(true)})
	allowed(g.T, "a revision without an owner", g.tenant.Create(g.Context(), last))
	g.within("the garbage collector deletes it", func(ctx context.Context) (bool, error) {
		err := g.admin.Get(ctx, client.ObjectKeyFromObject(last), last)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}

func (g *guarded) changed(t *testing.T, stored *appsv1.ControllerRevision) {
	t.Helper()
	for name, change := range map[string]func(*appsv1.ControllerRevision){
		"its number":    func(o *appsv1.ControllerRevision) { o.Revision = 99 },
		"its labels":    func(o *appsv1.ControllerRevision) { o.Labels["app"] = "other" },
		"no owner":      func(o *appsv1.ControllerRevision) { o.OwnerReferences = nil },
		"another owner": func(o *appsv1.ControllerRevision) { o.OwnerReferences[0].APIVersion = "apps.kruise.io/v1" },
		"a finalizer":   func(o *appsv1.ControllerRevision) { o.Finalizers = []string{"example.com/kept"} },
		"what cairn notes": func(o *appsv1.ControllerRevision) {
			metav1.SetMetaDataAnnotation(&o.ObjectMeta, history.CompletedRevisionsAnnotation, o.Name)
		},
	} {
		refused(t, name, g.updated(stored, change))
	}
	allowed(t, "a change cause", g.updated(stored, func(o *appsv1.ControllerRevision) {
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, inspect.ChangeCauseAnnotation, "a new logo")
	}))
	refused(t, "deleted", g.tenant.Delete(t.Context(), stored))
}

// updated changes a revision as the tenant, again if its controller has changed it meanwhile.
func (g *guarded) updated(stored *appsv1.ControllerRevision, change func(*appsv1.ControllerRevision)) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		o := &appsv1.ControllerRevision{}
		if err := g.admin.Get(g.Context(), client.ObjectKeyFromObject(stored), o); err != nil {
			return err
		}
		change(o)
		return g.tenant.Update(g.Context(), o)
	})
}

// composite is a revision of a composite parent.
func composite() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "metacontroller.k8s.io/v1alpha1", "kind": "ControllerRevision",
		"metadata":    map[string]any{"namespace": team, "name": "cats-1"},
		"parentPatch": map[string]any{"spec": map[string]any{"image": "cat:1"}},
		"children":    []any{map[string]any{"apiGroup": "", "kind": "Pod", "names": []any{"tom"}}},
	}}
}

func (g *guarded) metacontroller(t *testing.T) {
	t.Helper()
	refused(t, "planted", g.tenant.Create(t.Context(), composite()))
	stored := composite()
	allowed(t, "an administrator", g.admin.Create(t.Context(), stored))
	for field, value := range map[string]any{"children": []any{}, "revision": int64(3)} {
		o := stored.DeepCopy()
		o.Object[field] = value
		refused(t, field, g.tenant.Update(t.Context(), o))
	}
	o := stored.DeepCopy()
	o.SetAnnotations(map[string]string{"cairn.dev/held-children": "{}"})
	refused(t, "what is held", g.tenant.Update(t.Context(), o))
	o = stored.DeepCopy()
	o.SetAnnotations(map[string]string{inspect.ChangeCauseAnnotation: "a new logo"})
	allowed(t, "a change cause", g.tenant.Update(t.Context(), o))
	refused(t, "deleted", g.tenant.Delete(t.Context(), stored))
}

// pod is one that somebody gives to the set.
func (g *guarded) pod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: team, GenerateName: "web-", Labels: map[string]string{"app": "web"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "web", UID: g.web.UID, Controller: new(true)}},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
	}
}

func (g *guarded) given(t *testing.T) {
	t.Helper()
	given := g.pod()
	refused(t, "a pod of the set", g.tenant.Create(t.Context(), given))
	for _, owner := range [][2]string{
		{"apps/v9", "StatefulSet"},
		{"extensions/v1beta1", "ReplicaSet"},
		{"v1", "ReplicationController"},
		{"v2", "ReplicationController"},
		{"/v1", "ReplicationController"},
	} {
		forged := g.pod()
		forged.OwnerReferences[0].APIVersion, forged.OwnerReferences[0].Kind = owner[0], owner[1]
		refused(t, strings.Join(owner[:], " "), g.tenant.Create(t.Context(), forged))
	}
	free := g.pod()
	free.OwnerReferences, free.Labels = nil, nil
	allowed(t, "a pod", g.tenant.Create(t.Context(), free))
	give := func(controller bool) error {
		body := fmt.Appendf(nil, `{"metadata": {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "web", "uid": %q, "controller": %t}]}}`,
			g.web.UID, controller)
		return g.tenant.Patch(t.Context(), free, client.RawPatch(types.MergePatchType, body))
	}
	refused(t, "a pod, later", give(true))
	allowed(t, "one that the set does not control", give(false))
	of := g.pod()
	of.OwnerReferences[0].APIVersion = "apps.kruise.io/v1alpha1"
	allowed(t, "another controller's", g.tenant.Create(t.Context(), of))
	mine := &corev1.PodList{}
	g.within("the controller goes on", func(ctx context.Context) (bool, error) {
		err := g.admin.List(ctx, mine, client.InNamespace(team))
		return slices.ContainsFunc(mine.Items, func(p corev1.Pod) bool { return metav1.IsControlledBy(&p, g.web) }), err
	})
	for i := range mine.Items {
		if metav1.IsControlledBy(&mine.Items[i], g.web) {
			labelled := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"labels": {"note": "mine"}}}`))
			allowed(t, "a label of a pod of the set", g.tenant.Patch(t.Context(), &mine.Items[i], labelled))
			return
		}
	}
}

// described are the kinds of objects that name an account, without one.
func described() []*unstructured.Unstructured {
	rule := map[string]any{"apiVersion": "v1", "resource": "configmaps"}
	sync := map[string]any{"webhook": map[string]any{"url": "https://hooks.example.com/sync"}}
	of := func(apiVersion, kind string, spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": "tina"}, "spec": spec,
		}}
	}
	hooks := func() map[string]any { return map[string]any{"sync": sync} }
	return []*unstructured.Unstructured{
		of("metacontroller.k8s.io/v1alpha1", "CompositeController", map[string]any{"parentResource": rule, "hooks": hooks()}),
		of("metacontroller.k8s.io/v1alpha1", "DecoratorController", map[string]any{"resources": []any{rule}, "hooks": hooks()}),
		of("cairn.dev/v1alpha1", "HistoryPolicy", map[string]any{"resource": rule}),
	}
}

// accounts are for those who may act as them, through cairn as well.
func (g *guarded) accounts(t *testing.T) {
	t.Helper()
	naming := func(o *unstructured.Unstructured, account string) *unstructured.Unstructured {
		o = o.DeepCopy()
		o.SetAnnotations(map[string]string{v1alpha1.ServiceAccountAnnotation: account})
		return o
	}
	denied := func(what string, err error, says string) {
		t.Helper()
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", what, err)
		}
	}
	mayActAs := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "act"}, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, ResourceNames: []string{"runner"}, Verbs: []string{"impersonate"},
		}},
	}
	for _, o := range described() {
		kind := o.GetKind()
		denied(kind, g.tenant.Create(t.Context(), o.DeepCopy()), "it acts as ServiceAccount cairn-system/cairn-manager (annotation "+
			"cairn.dev/service-account: NAMESPACE/NAME), so who creates or edits it has to be allowed to impersonate that account")
		for _, account := range []string{"kube-system/default", "team/runner", "runner", "team/runner/x", ""} {
			denied(kind+" as "+account, g.tenant.Create(t.Context(), naming(o, account)), "it acts as ServiceAccount "+account+" (")
		}
	}
	bind := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "act"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "act"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "tina"}},
	}
	allowed(t, "grant", g.admin.Create(t.Context(), mayActAs))
	allowed(t, "grant", g.admin.Create(t.Context(), bind))
	for _, o := range described() {
		kind, mine := o.GetKind(), naming(o, "team/runner")
		g.within("the right is known", func(ctx context.Context) (bool, error) {
			return !apierrors.IsForbidden(g.tenant.Create(ctx, mine.DeepCopy(), client.DryRunAll)), nil
		})
		allowed(t, kind, g.tenant.Create(t.Context(), mine))
		other := naming(mine, "kube-system/default")
		denied(kind+", later", g.tenant.Update(t.Context(), other), "it acts as ServiceAccount kube-system/default (")
		mine.SetLabels(map[string]string{"a": "b"})
		allowed(t, kind+": a label", g.tenant.Update(t.Context(), mine))
		if kind == "HistoryPolicy" {
			continue
		}
		for _, given := range []string{"caBundle", "clientTLS", "authorization", "basicAuth"} {
			for namespace, may := range map[string]bool{team: true, "kube-system": false} {
				ref := map[string]any{"secretRef": map[string]any{"name": "token", "namespace": namespace, "key": "token", "username": "u", "password": "p"}}
				hook, config := mine.DeepCopy(), mine.DeepCopy()
				unstructuredSet(t, hook, ref, "spec", "hooks", "sync", "webhook", given)
				unstructuredSet(t, config, []any{map[string]any{"host": "hooks.example.com", given: ref}}, "spec", "endpointConfigs")
				for where, o := range map[string]*unstructured.Unstructured{"webhook": hook, "endpointConfigs": config} {
					err := g.tenant.Update(t.Context(), o, client.DryRunAll)
					if may {
						allowed(t, kind+" "+where+" "+given, err)
					} else {
						denied(kind+" "+where+" "+given, err, "its webhooks are given Secrets")
					}
				}
			}
		}
	}
	own := described()[0]
	own.SetName("own")
	allowed(t, "an administrator", g.admin.Create(t.Context(), own, client.DryRunAll))
}

func unstructuredSet(t *testing.T, o *unstructured.Unstructured, value any, path ...string) {
	t.Helper()
	if err := unstructured.SetNestedField(o.Object, runtime.DeepCopyJSONValue(value), path...); err != nil {
		t.Fatal(err)
	}
}

func (g *guarded) others(t *testing.T, stored *appsv1.ControllerRevision) {
	t.Helper()
	allowed(t, "the manager", g.manager.Create(t.Context(), orphan(), client.DryRunAll))
	allowed(t, "an administrator", g.admin.Create(t.Context(), orphan(), client.DryRunAll))

	role := &rbacv1.Role{}
	if err := g.admin.Get(t.Context(), client.ObjectKey{Namespace: team, Name: "all"}, role); err != nil {
		t.Fatal(err)
	}
	role.Rules[0].Verbs = append(slices.Clone(role.Rules[0].Verbs), "override")
	if err := g.admin.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	g.within("a tenant with the verb", func(ctx context.Context) (bool, error) {
		return g.tenant.Create(ctx, orphan(), client.DryRunAll) == nil && g.tenant.Delete(ctx, stored, client.DryRunAll) == nil, nil
	})

	if err := g.admin.Patch(t.Context(), g.web, client.RawPatch("application/merge-patch+json",
		[]byte(`{"spec": {"revisionHistoryLimit": 0, "template": {"spec": {"terminationGracePeriodSeconds": 0}}}}`))); err != nil {
		t.Fatal(err)
	}
	g.within("the controller records the next revision, and deletes the first one", func(ctx context.Context) (bool, error) {
		return apierrors.IsNotFound(g.admin.Get(ctx, client.ObjectKeyFromObject(stored), stored.DeepCopy())), nil
	})
	if err := g.admin.Delete(t.Context(), g.web); err != nil {
		t.Fatal(err)
	}
	g.within("the garbage collector deletes the last one", func(ctx context.Context) (bool, error) {
		var list appsv1.ControllerRevisionList
		err := g.admin.List(ctx, &list, client.InNamespace(team))
		return !slices.ContainsFunc(list.Items, func(o appsv1.ControllerRevision) bool { return metav1.IsControlledBy(&o, g.web) }), err
	})
}
