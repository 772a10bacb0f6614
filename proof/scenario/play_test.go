package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cairn-dev/cairn/proof/check"
)

// This file plays scripts on a stage that has a client and writes down what else it is asked for.

type fakeStage struct {
	client client.Client
	log    []string
	uids   int
}

func newFakeStage() *fakeStage {
	s := &fakeStage{}
	s.client = fake.NewClientBuilder().WithRESTMapper(testrestmapper.TestOnlyStaticRESTMapper(clientgoscheme.Scheme)).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			err := c.List(ctx, list, opts...)
			list.SetResourceVersion("42")
			return err
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			s.uids++
			o.SetUID(types.UID(fmt.Sprint("uid-", s.uids)))
			return c.Create(ctx, o, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			var options client.DeleteOptions
			options.ApplyOptions(opts)
			grace := "default"
			if options.GracePeriodSeconds != nil {
				grace = fmt.Sprint(*options.GracePeriodSeconds)
			}
			s.notef("delete %s, %s, grace %s", o.GetName(), *options.PropagationPolicy, grace)
			return c.Delete(ctx, o, opts...)
		},
	}).Build()
	return s
}

func (s *fakeStage) notef(format string, args ...any) {
	s.log = append(s.log, fmt.Sprintf(format, args...))
}

func (*fakeStage) Name() string            { return "fake" }
func (s *fakeStage) Client() client.Client { return s.client }
func (*fakeStage) Namespace() string       { return "ns" }

func (s *fakeStage) Nodes(_ context.Context, n int) error {
	s.notef("%d nodes", n)
	return nil
}

func (s *fakeStage) Pod(_ context.Context, name string, state PodState) error {
	s.notef("pod %s %s", name, state)
	return nil
}

func (s *fakeStage) Until(ctx context.Context, what string, f func(context.Context) error) error {
	s.notef("until %s", what)
	return f(ctx)
}

func (s *fakeStage) Settle(context.Context) error {
	s.notef("settle")
	return nil
}

func (s *fakeStage) StartManager(_ context.Context, n int) error {
	s.notef("start %d", n)
	return nil
}

func (s *fakeStage) KillManager(_ context.Context, n int) error {
	s.notef("kill %d", n)
	return nil
}

func (s *fakeStage) Fault(_ context.Context, f FaultSpec) error {
	switch f.Do {
	case Fail:
		s.notef("manager %d: %v: %s %s/%s from %d, %d times", f.Manager, f.Mode, f.Verb, f.Resource, f.Subresource, f.Nth, f.Times)
	case Refuse:
		s.notef("manager %d: %d: %s %s/%s from %d, %d times", f.Manager, f.Status, f.Verb, f.Resource, f.Subresource, f.Nth, f.Times)
	default:
		s.notef("manager %d: %s: %s", f.Manager, f.Do, strings.TrimSpace(fmt.Sprint(f.Verb, " ", f.Resource, " ", f.ResourceVersion)))
	}
	return nil
}

func (*fakeStage) Sync(context.Context) (uint64, error) { return 0, nil }
func (*fakeStage) History() (*check.History, error)     { return &check.History{}, nil }
func (s *fakeStage) put(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := s.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// owned is an object that belongs to a DaemonSet called web.
func owned[T client.Object](o T, name string, labels map[string]string) T {
	o.SetName(name)
	o.SetNamespace("ns")
	o.SetLabels(labels)
	yes := true
	o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "web", UID: "web", Controller: &yes}})
	return o
}

func revision(number int64, image string) *appsv1.ControllerRevision {
	hash := fmt.Sprint("h", number)
	return owned(&appsv1.ControllerRevision{Revision: number, Data: runtime.RawExtension{Raw: fmt.Appendf(nil,
		`{"spec":{"template":{"$patch":"replace","metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"main","image":%q}]}}}}`, image)}},
		"web-"+hash, map[string]string{"app": "web", appsv1.ControllerRevisionHashLabelKey: hash})
}

func pod(name, node, image string, revision int) *corev1.Pod {
	return owned(&corev1.Pod{
		Spec:   corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: image}}},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}, name, map[string]string{"app": "web", appsv1.ControllerRevisionHashLabelKey: fmt.Sprint("h", revision)})
}

func play(t *testing.T, stage *fakeStage, text string) error {
	t.Helper()
	s, err := parse(t, text)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Play(t.Context(), stage)
	return err
}

func mustPlay(t *testing.T, stage *fakeStage, text string) {
	t.Helper()
	if err := play(t, stage, text); err != nil {
		t.Fatal(err)
	}
}

// What the user does, and what can be expected of it: each expectation fails if the verb before it does nothing.
func TestPlayObjects(t *testing.T) {
	stage := newFakeStage()
	mustPlay(t, stage, `
create daemonset web image=app:1 maxUnavailable=1 maxSurge=50% historyLimit=3 spec.template.spec.hostNetwork=true
expect daemonset web image=app:1 maxUnavailable=1 maxSurge=50% historyLimit=3 spec.template.spec.hostNetwork=true
expect daemonset web spec.selector.matchLabels.app=web status.collisionCount=0 minReadySeconds=none
edit daemonset web image=app:2 historyLimit=-
expect daemonset web image=app:2 historyLimit=- spec.template.spec.containers[0].name=main
patch daemonset web {"spec": {"minReadySeconds": 5}}
expect daemonset web minReadySeconds=5
relabel daemonset web a.b/c=d
expect daemonset web metadata.labels[a.b/c]=d
relabel daemonset web a.b/c=-
expect daemonset web metadata.labels[a.b/c]=none
edit daemonsets.apps web spec.minReadySeconds=7
expect daemonsets.apps web spec.minReadySeconds=7
expect 1 daemonsets.apps
create statefulset db replicas=2 partition=1 podManagement=Parallel
scale statefulset db to 5
expect statefulset db replicas=5 partition=1 spec.podManagementPolicy=Parallel
create replicaset rs replicas=1
create replicationcontroller rc
expect replicationcontroller rc spec.selector.app=rc
apply both.yaml
apply both.yaml
expect configmap one data.a=1
expect 1 configmaps
expect quota all spec.hard.pods=1
expect no configmap two
delete configmap one cascade=orphan grace=0
expect no configmap one

-- both.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: one}
data: {a: "1"}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: all}
spec: {hard: {pods: "1"}}
`)
	if got := strings.Join(stage.log, "\n"); got != "start 1\ndelete one, Orphan, grace 0" {
		t.Errorf("the stage was asked for\n%s", got)
	}
}

// children is a stage with a rollout from revision 1 to 2, on node-0 by now.
func children(t *testing.T) *fakeStage {
	t.Helper()
	stage := newFakeStage()
	mustPlay(t, stage, "create daemonset web image=app:2\n")
	stage.put(t, revision(1, "app:1"), revision(2, "app:2"), pod("web-a", "node-0", "app:2", 2), pod("web-b", "node-1", "app:1", 1))
	stage.log = nil
	return stage
}

func TestPlayChildren(t *testing.T) {
	stage := children(t)
	mustPlay(t, stage, `
expect revisions of web 1=app:1 2=app:2
expect 2 pods of web ready=true
expect 1 pods of web image=app:1 revision=1
expect pod of web on node-0 image=app:2 revision=2 node=node-0 owner=web
expect no pods of web on node-2
expect revision 2 of web image=app:2 number=2
remember before
undo daemonset web
expect daemonset web image=app:1
undo daemonset web to=2
expect daemonset web image=app:2
plant revision twin of daemonset web revision=1 number=7
expect revisions of web 1=app:1 2=app:2 7=app:1
expect revision twin metadata.labels[controller-revision-hash]=twin owner=web
undo daemonset web to=twin
expect daemonset web image=app:1
plant revision bare of daemonset web revision=twin number=8 hash=-
expect revision bare metadata.labels[controller-revision-hash]=none image=app:1
plant revision lent of daemonset web revision=twin number=9 hash=twin owner=none
expect revision lent metadata.labels[controller-revision-hash]=twin owner=none
delete revision bare
delete revision lent
create {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "whole"}, "data": {"n": "9223372036854775807"}}
expect configmap whole data.n=9223372036854775807
edit daemonset web image=app:2
plant pod stray of daemonset web on node-2 image=evil:1 revision=1
expect pod stray owner=none image=evil:1 node=node-2 metadata.labels[app]=web revision=1
create configmap other
plant pod hers of daemonset web owner=configmap/other
expect pod hers owner=other image=app:2
expect 2 pods of web since=before
expect no pod stray since=before
expect 1 pods owner=none
pod of web on node-1 failed
pod stray gone
delete pod of web on node-1
expect 1 pods of web
`)
	if got := strings.Join(stage.log, "\n"); got != "start 1\ndelete bare, Background, grace default\ndelete lent, Background, grace default\npod web-b failed\npod stray gone\ndelete web-b, Background, grace default" {
		t.Errorf("the stage was asked for\n%s", got)
	}
}

// Every expectation that can hold can fail, and says how things are instead.
func TestExpectationsFail(t *testing.T) {
	for line, want := range map[string]string{
		"expect 3 pods of web":                          "there are 2 (web-a, web-b)",
		"expect no pods of web image=app:1":             "there are 1 (web-b); others: web-a: image is app:2",
		"expect revisions of web 1=app:1":               "they are 1=app:1 2=app:2",
		"expect daemonset web image=app:1":              "web: image is app:2",
		"expect daemonset api":                          "daemonset api: there is none",
		"expect no daemonset web":                       "there are 1 (web)",
		"expect pod of web":                             "pod of web: there are 2: web-a, web-b",
		"expect pod web-a revision=1":                   "web-a: revision is 2",
		"expect condition Updated of daemonset web":     "has no condition Updated",
		"expect pod web-a since=then":                   "no step has said: remember then",
		"expect condition Ready of pod web-a status=No": "status is True",
		"wait 1 pods of web":                            "there are 2",
		"undo daemonset web to=9":                       "there is no revision to go back to: web has [1 2]",
		"edit daemonset api image=x":                    "there is none",
		"rewind pods to then":                           "no step has said: remember then",
	} {
		err := play(t, children(t), line+"\n")
		var failed *StepError
		if !errors.As(err, &failed) || failed.Step.Line != 1 || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is\n\t%v\nand does not say\n\t%s", line, err, want)
		}
	}
}

func TestPlayWorldAndFaults(t *testing.T) {
	stage := newFakeStage()
	mustPlay(t, stage, `
nodes 3
settle
start manager 2
kill manager
lose response of create pod 2
lose response of create revision unseen=true
lose request of delete pods times=3 manager=2
crash before patch daemonset/status
crash after create catsets.example.com stale=true
conflict on update statefulset
throttle create pod
reject create pod
fail * pod
hang delete pod
forbid create revision
forbid patch pod 2 status=422 times=1
allow create revision
hold pods manager=1
release pods
cut revisions
remember then
rewind daemonsets to then
wait no pods of web image=app:1
`)
	const want = `3 nodes
start 1
settle
start 2
kill 1
manager 0: response lost: create pods/ from 2, 0 times
manager 0: response lost unseen: create controllerrevisions.apps/ from 1, 0 times
manager 2: request lost: delete pods/ from 1, 3 times
manager 0: kill before: patch daemonsets.apps/status from 1, 0 times
manager 0: kill after and restart in the past: create catsets.example.com/ from 1, 0 times
manager 0: 409 conflict: update statefulsets.apps/ from 1, 0 times
manager 0: 429 with Retry-After: create pods/ from 1, 0 times
manager 0: 429 without Retry-After: create pods/ from 1, 0 times
manager 0: 500: * pods/ from 1, 0 times
manager 0: hang: delete pods/ from 1, 0 times
manager 0: 403: create controllerrevisions.apps/ from 1, 0 times
manager 0: 422: patch pods/ from 2, 1 times
manager 0: allow: create controllerrevisions.apps
manager 1: hold: pods
manager 0: release: pods
manager 0: cut: controllerrevisions.apps
manager 0: rewind: daemonsets.apps 42
until no pods of web image=app:1`
	if got := strings.Join(stage.log, "\n"); got != want {
		t.Errorf("the stage was asked for\n%s\nwant\n%s", got, want)
	}
}

// Whoever reads the documentation can write every step.
func TestEveryVerbIsDocumented(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(text)
	for name, v := range verbs() {
		for form := range strings.SplitSeq(v.form, ", or ") {
			if name != "wait" && name != "expect" && !strings.Contains(doc, "\n//\t"+form) {
				t.Errorf("doc.go does not say: %s", form)
			}
		}
	}
	for form := range strings.SplitSeq(conditionForms, ", or ") {
		if form != "no KIND NAME" && !strings.Contains(doc, "\n//\t"+form) {
			t.Errorf("doc.go does not say: %s", form)
		}
	}
	for _, field := range fieldWords {
		if !strings.Contains(doc, field) {
			t.Errorf("doc.go does not name the field %s", field)
		}
	}
}
