package statefulset

// Claims: when they are made, when they delay a pod, and who owns them under each pair of retention policies.

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/fakeserver"
	"github.com/cairn-dev/cairn/pass"
)

type claimOption func(*corev1.PersistentVolumeClaim)

// claim is the claim of an ordinal of web, owned by nobody.
func claim(ordinal int64, options ...claimOption) *corev1.PersistentVolumeClaim {
	set := web(data(retain, retain))
	c := claimFor(set, &set.Spec.VolumeClaimTemplates[0], ordinal)
	c.UID, c.ResourceVersion = types.UID("uid-of-"+c.Name), "1"
	for _, option := range options {
		option(c)
	}
	return c
}

func ownedBy(refs ...metav1.OwnerReference) claimOption {
	return func(c *corev1.PersistentVolumeClaim) { c.OwnerReferences = refs }
}

func claimGoing(c *corev1.PersistentVolumeClaim) {
	at := metav1.NewTime(now)
	c.DeletionTimestamp, c.Finalizers = &at, []string{"kubernetes.io/pvc-protection"}
}

func refTo(o client.Object, gvk schema.GroupVersionKind) metav1.OwnerReference {
	return *metav1.NewControllerRef(o, gvk)
}

var (
	setRef     = refTo(web(), kind)
	podRef     = refTo(pod(0, "b"), podKind)
	oldPodRef  = refTo(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-0", UID: "an earlier one"}}, podKind)
	oldSetRef  = refTo(&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "an earlier one"}}, kind)
	plainRef   = metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"}
	foreignRef = refTo(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "boss", UID: "boss"}}, corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	weakRef    = metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: "web-uid"}
)

func owners(refs []metav1.OwnerReference) string {
	var out []string
	for _, ref := range refs {
		out = append(out, ref.Kind)
	}
	return strings.Join(out, " ")
}

func TestClaimOwners(t *testing.T) {
	type policy = appsv1.PersistentVolumeClaimRetentionPolicyType
	for name, c := range map[string]struct {
		deleted, scaled policy
		condemned       bool
		have            []metav1.OwnerReference
		want            string
		differ, foreign bool
	}{
		"kept":                               {retain, retain, false, nil, "", false, false},
		"kept, was to go":                    {retain, retain, false, []metav1.OwnerReference{setRef}, "", true, false},
		"kept, scaled down":                  {retain, retain, true, []metav1.OwnerReference{podRef}, "", true, false},
		"goes with the set":                  {remove, retain, false, nil, "StatefulSet", true, false},
		"goes with the set already":          {remove, retain, false, []metav1.OwnerReference{setRef}, "StatefulSet", false, false},
		"goes with the set, scaled down":     {remove, retain, true, []metav1.OwnerReference{setRef}, "StatefulSet", false, false},
		"goes with a scale down, not yet":    {retain, remove, false, nil, "", false, false},
		"goes with a scale down, now":        {retain, remove, true, nil, "Pod", true, false},
		"goes with a scale down, it did":     {retain, remove, true, []metav1.OwnerReference{podRef}, "Pod", false, false},
		"goes with a scale down, after all":  {retain, remove, false, []metav1.OwnerReference{podRef}, "", true, false},
		"goes with either":                   {remove, remove, false, nil, "StatefulSet", true, false},
		"goes with either, scaled down":      {remove, remove, true, []metav1.OwnerReference{setRef}, "Pod", true, false},
		"goes with either, scaled up again":  {remove, remove, false, []metav1.OwnerReference{podRef}, "StatefulSet", true, false},
		"other owners stay":                  {remove, retain, false, []metav1.OwnerReference{plainRef}, "ConfigMap StatefulSet", true, false},
		"ours without being the controller":  {remove, retain, false, []metav1.OwnerReference{weakRef}, "StatefulSet", true, false},
		"another controller, kept":           {retain, retain, false, []metav1.OwnerReference{foreignRef}, "ConfigMap", false, false},
		"another controller":                 {remove, retain, false, []metav1.OwnerReference{foreignRef}, "ConfigMap", false, true},
		"another controller, and a weak one": {remove, retain, false, []metav1.OwnerReference{foreignRef, weakRef}, "ConfigMap", true, true},
		"of an earlier pod":                  {remove, remove, true, []metav1.OwnerReference{oldPodRef}, "", false, false},
		"of an earlier set":                  {remove, remove, false, []metav1.OwnerReference{oldSetRef}, "", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			set := web(data(c.deleted, c.scaled))
			if c.condemned {
				replicas(0)(set)
			}
			have := claim(0, ownedBy(c.have...))
			before := have.DeepCopy()
			want, differ, foreign := ownersOf(set, pod(0, "b", mounted), have)
			if owners(want) != c.want || differ != c.differ || foreign != c.foreign {
				t.Errorf("%q, %v, %v", owners(want), differ, foreign)
			}
			if diff := cmp.Diff(before, have); diff != "" {
				t.Errorf("the claim changed:\n%s", diff)
			}
		})
	}
}

func TestPlanClaims(t *testing.T) {
	one := replicas(1)
	for name, c := range map[string]struct {
		set    []setOption
		pods   []*corev1.Pod
		claims []*corev1.PersistentVolumeClaim
		want   []string
		says   string
	}{
		"there already":                   {[]setOption{one, data(retain, retain)}, nil, []*corev1.PersistentVolumeClaim{claim(0)}, []string{"create web-0 b"}, ""},
		"going":                           {[]setOption{one, data(retain, retain)}, nil, []*corev1.PersistentVolumeClaim{claim(0, claimGoing)}, nil, "web-0: claim data-web-0 is being deleted"},
		"about to go with an earlier pod": {[]setOption{one, data(retain, remove)}, nil, []*corev1.PersistentVolumeClaim{claim(0, ownedBy(oldPodRef))}, nil, "web-0: claim data-web-0 goes with an earlier pod web-0"},
		"of an earlier pod, kept now":     {[]setOption{one, data(retain, retain)}, nil, []*corev1.PersistentVolumeClaim{claim(0, ownedBy(oldPodRef))}, []string{"create web-0 b"}, ""},
		"missing for a pod that waits":    {[]setOption{one, data(retain, retain)}, []*corev1.Pod{pod(0, "b", pending, mounted)}, nil, []string{"claim data-web-0"}, ""},
		"missing for a pod that runs":     {[]setOption{one, data(retain, retain)}, []*corev1.Pod{pod(0, "b", mounted)}, nil, nil, ""},
		"to be owned":                     {[]setOption{one, data(remove, retain)}, []*corev1.Pod{pod(0, "b", mounted)}, []*corev1.PersistentVolumeClaim{claim(0)}, []string{"own data-web-0"}, ""},
		"to be owned, but going":          {[]setOption{one, data(remove, retain)}, []*corev1.Pod{pod(0, "b", mounted)}, []*corev1.PersistentVolumeClaim{claim(0, claimGoing)}, nil, ""},
		"scaled down, and it goes":        {[]setOption{one, data(retain, remove)}, []*corev1.Pod{pod(0, "b", mounted), pod(1, "b", mounted)}, []*corev1.PersistentVolumeClaim{claim(0), claim(1)}, []string{"delete web-1, own data-web-1"}, ""},
		"scaled down, not mounted":        {[]setOption{one, data(retain, remove)}, []*corev1.Pod{pod(0, "b", mounted), pod(1, "b")}, []*corev1.PersistentVolumeClaim{claim(0), claim(1)}, []string{"delete web-1"}, ""},
		"scaled down, not mounted, to go": {[]setOption{one, data(remove, remove)}, []*corev1.Pod{pod(0, "b", mounted), pod(1, "b")}, []*corev1.PersistentVolumeClaim{claim(1)}, []string{"delete web-1"}, ""},
		"scaled down, while it waits":     {[]setOption{one, data(retain, remove)}, []*corev1.Pod{pod(0, "b", stuck, mounted), pod(1, "b")}, []*corev1.PersistentVolumeClaim{claim(0), claim(1)}, nil, ""},
		"scaled down, and kept now":       {[]setOption{one, data(retain, retain)}, []*corev1.Pod{pod(0, "b", stuck, mounted), pod(1, "b", terminating)}, []*corev1.PersistentVolumeClaim{claim(0), claim(1, ownedBy(refTo(pod(1, "b"), podKind)))}, []string{"own data-web-1"}, ""},
		"scaled down, Parallel":           {[]setOption{one, parallel, data(retain, remove)}, []*corev1.Pod{pod(0, "b", stuck, mounted), pod(1, "b", mounted)}, []*corev1.PersistentVolumeClaim{claim(0), claim(1)}, []string{"delete web-1, own data-web-1"}, ""},
		"scaled down, Recreate":           {[]setOption{one, recreating, data(retain, remove)}, []*corev1.Pod{pod(0, "b", mounted), pod(1, "a", mounted)}, []*corev1.PersistentVolumeClaim{claim(0), claim(1)}, []string{"delete web-1, own data-web-1"}, ""},
		// Whatever takes a pod away that was surplus a moment ago, its claim stays.
		"asked for again, alive":          {[]setOption{one, data(retain, remove)}, []*corev1.Pod{pod(0, "b", mounted)}, []*corev1.PersistentVolumeClaim{claim(0, ownedBy(podRef))}, []string{"own data-web-0"}, ""},
		"asked for again, terminating":    {[]setOption{one, data(retain, remove)}, []*corev1.Pod{pod(0, "b", terminating)}, []*corev1.PersistentVolumeClaim{claim(0, ownedBy(podRef))}, []string{"own data-web-0"}, ""},
		"asked for again, Parallel":       {[]setOption{one, parallel, data(retain, remove)}, []*corev1.Pod{pod(0, "b", terminating)}, []*corev1.PersistentVolumeClaim{claim(0, ownedBy(podRef))}, []string{"own data-web-0"}, ""},
		"asked for again, ended":          {[]setOption{one, data(retain, remove)}, []*corev1.Pod{pod(0, "b", phase(corev1.PodFailed))}, []*corev1.PersistentVolumeClaim{claim(0, ownedBy(podRef))}, []string{"delete web-0, own data-web-0"}, ""},
		"asked for again, then updated":   {[]setOption{one, data(retain, remove)}, []*corev1.Pod{pod(0, "a", mounted)}, []*corev1.PersistentVolumeClaim{claim(0, ownedBy(podRef))}, []string{"delete web-0, own data-web-0"}, ""},
		"asked for again, then recreated": {[]setOption{one, recreating, data(retain, remove)}, []*corev1.Pod{pod(0, "a", mounted)}, []*corev1.PersistentVolumeClaim{claim(0, ownedBy(podRef))}, []string{"delete web-0, own data-web-0"}, ""},
		"asked for again, recreating":     {[]setOption{one, recreating, data(retain, remove)}, []*corev1.Pod{pod(0, "a", terminating)}, []*corev1.PersistentVolumeClaim{claim(0, ownedBy(podRef))}, []string{"own data-web-0"}, ""},
		"scaled down, by somebody":        {[]setOption{one, data(retain, remove)}, []*corev1.Pod{pod(0, "b", mounted), pod(1, "b", terminating, mounted)}, []*corev1.PersistentVolumeClaim{claim(0), claim(1)}, []string{"own data-web-1"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := settled(given(web(c.set...), c.pods...))
			for _, claim := range c.claims {
				f.claims[claim.Name] = claim
			}
			p := mustPlan(t, f)
			wantSteps(t, p, c.want...)
			if c.says != "" && says(p) != c.says {
				t.Errorf("says %q", says(p))
			}
		})
	}
}

// mounted gives a pod the volume of its claim.
func mounted(p *corev1.Pod) {
	p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-" + p.Name},
	}}}
}

// TestScaleDownWithClaims: a condemned pod owns its claims before it is deleted, and stays if they do not say so.
func TestScaleDownWithClaims(t *testing.T) {
	objects := func() []client.Object {
		return append(between(t, []setOption{replicas(1), data(retain, remove), onDelete}, pod(0, "b", mounted), pod(1, "b", mounted)), claim(0), claim(1))
	}
	w := newWorld(t, objects()...)
	w.mustReconcile()
	var got []string
	for _, c := range w.Writes() {
		if c.Kind == "Pod" || c.Kind == "PersistentVolumeClaim" {
			got = append(got, c.String())
		}
	}
	if diff := cmp.Diff([]string{"patch PersistentVolumeClaim data-web-1", "delete Pod web-1"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, c := range w.Calls("patch") {
		if c.Kind == "PersistentVolumeClaim" && (c.UID != "uid-of-data-web-1" || c.Version == "") {
			t.Errorf("%s has no preconditions: %s", c, c.Body)
		}
	}
	for name, err := range map[string]error{
		"it changed": apierrors.NewConflict(schema.GroupResource{}, "data-web-1", nil),
		"forbidden":  apierrors.NewForbidden(schema.GroupResource{}, "data-web-1", nil),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, objects()...)
			w.Before = fakeserver.Refuse("patch", "PersistentVolumeClaim", err)
			result, got := w.r.Reconcile(t.Context(), request)
			if len(w.WritesTo("Pod")) != 0 || (got == nil) != (result.RequeueAfter == pass.StaleRetry) || (got == nil) != apierrors.IsConflict(err) {
				t.Errorf("wrote %v, result %+v, %v", w.WritesTo("Pod"), result, got)
			}
		})
	}
}

// TestClaimsOfNewPods: claims are made from their templates, with the labels of the selector, owned by the set if they
// go with it; the volume of that name in the template makes room for them.
func TestClaimsOfNewPods(t *testing.T) {
	w := newWorld(t, web(data(remove, retain), func(set *appsv1.StatefulSet) {
		set.Spec.VolumeClaimTemplates[0].Labels = map[string]string{"tier": "data"}
		set.Spec.Template.Spec.Volumes = []corev1.Volume{
			{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		}
	}))
	w.mustReconcile()
	var list corev1.PersistentVolumeClaimList
	w.list(&list)
	c := list.Items[0]
	if c.Name != "data-web-0" || c.Labels["tier"] != "data" || c.Labels["app"] != "web" || !metav1.IsControlledBy(&c, w.set()) {
		t.Errorf("claim %+v", c.ObjectMeta)
	}
	volumes := w.pod(0).Spec.Volumes
	if len(volumes) != 2 || volumes[0].PersistentVolumeClaim == nil || volumes[0].PersistentVolumeClaim.ClaimName != "data-web-0" || volumes[1].Name != "tmp" {
		t.Errorf("volumes %+v", volumes)
	}
}

// TestUnseenClaim: a claim that is there, but not in the cache, might be going: its pod waits for the cache.
func TestUnseenClaim(t *testing.T) {
	s := fakeserver.New(t, web(data(retain, retain)), claim(0))
	w := worldOf(t, s, fakeserver.New(t, web(data(retain, retain))).Raw, nil)
	if result := w.mustReconcile(); result.RequeueAfter != pass.StaleRetry || len(w.WritesTo("Pod"))+len(w.Calls("patch status")) != 0 {
		t.Errorf("result %+v, wrote %v", result, w.Writes())
	}
}

func TestForeignClaims(t *testing.T) {
	w := newWorld(t, append(between(t, []setOption{replicas(1), data(remove, retain), onDelete}, pod(0, "b", mounted)), claim(0, ownedBy(foreignRef)))...)
	w.mustReconcile()
	if got := w.events.Events("ConflictingController"); len(got) != 1 || len(w.WritesTo("PersistentVolumeClaim")) != 0 {
		t.Errorf("events %v, wrote %v", w.events.Events(), w.Writes())
	}
}
