package status

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/cairn-dev/cairn/inspect"
	"github.com/cairn-dev/cairn/inspect/object"
	"github.com/cairn-dev/cairn/internal/inspecttest"
)

// TestReportedBy: an object of any kind is done, in progress or has failed by what its controller reports.
func TestReportedBy(t *testing.T) {
	for text, want := range map[string]verdict{
		"{apiVersion: v1, kind: ConfigMap}":                                                              {Done, nothingWaited},
		"{apiVersion: example.com/v1, kind: Note, spec: {text: hi}}":                                     {Unknown, unsaid},
		"{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Pending}}":                        {InProgress, "PVC is not Bound. phase: Pending"},
		"{apiVersion: v1, kind: PersistentVolume, status: {phase: Failed, message: no disk}}":            {Failed, "its phase is Failed: no disk"},
		"{apiVersion: batch/v1, kind: CronJob, spec: {suspend: true}}":                                   {Done, nothingWaited},
		"{apiVersion: batch/v1, kind: Job, spec: {suspend: true}}":                                       {InProgress, "spec.suspend is true"},
		"{apiVersion: batch/v1, kind: Job, spec: {completions: 2}, status: {startTime: now, active: 1}}": {InProgress, "active 1"},
		"{apiVersion: v1, kind: Pod, status: {phase: Failed, reason: Evicted}}":                          {Failed, "it has failed: Evicted"},
		"{apiVersion: example.com/v1, kind: App, status: {phase: Degraded, message: 1 pod is lost}}":     {Failed, "its phase is Degraded: 1 pod is lost"},
		"{apiVersion: example.com/v1, kind: App, status: {phase: Progressing}}":                          {InProgress, "its phase is Progressing"},
		"{apiVersion: example.com/v1, kind: App, status: {conditions: all good, phase: Healthy}}":        {Done, "its phase is Healthy"},
		"{apiVersion: example.com/v1, kind: App, spec: {replicas: 3}, status: {replicas: 3}}":            {Done, "replicas 3"},
		"{apiVersion: example.com/v1, kind: App, spec: {replicas: 3}, status: {readyReplicas: 1}}":       {InProgress, "readyReplicas is 1, and spec.replicas is 3"},
		"{apiVersion: example.com/v1, kind: App, metadata: {generation: 3}, status: {observedGeneration: '2'}}": {
			InProgress, "its controller has not observed the latest spec",
		},
		"{apiVersion: example.com/v1, kind: App, metadata: {generation: 3}, status: {observedGeneration: '3'}}": {Unknown, unsaid},
		"{apiVersion: example.com/v1, kind: App, spec: {replicas: 3, updateStrategy: {partition: 2}}, status: {updatedReplicas: 1, replicas: 3}}": {
			Done, "replicas 3, updatedReplicas 1",
		},
		"{apiVersion: batch/v1, kind: Job, spec: {backoffLimit: 0}, status: {succeeded: 1, conditions: [{type: Complete, status: 'True'}]}}": {
			Done, "Job Completed. succeeded: 1/1",
		},
		"{apiVersion: batch/v1, kind: Job, status: {conditions: [{type: Failed, status: 'True', reason: BackoffLimitExceeded, message: too often}]}}": {
			Failed, "BackoffLimitExceeded: too often",
		},
		"{apiVersion: apps/v1, kind: Deployment, status: {conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded, message: timed out}]}}": {
			Failed, "ProgressDeadlineExceeded: timed out",
		},
		"{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 2, paused: true}, status: {replicas: 1}}": {InProgress, "spec.paused is true"},
		"{apiVersion: example.com/v1, kind: App, status: {conditions: [{type: Ready, status: 'False', reason: NoDisk, message: full}]}}": {
			InProgress, "its condition Ready is False: NoDisk: full",
		},
		"{apiVersion: example.com/v1, kind: App, status: {conditions: [{type: Ready, status: 'True'}]}}": {Done, "its condition Ready is True"},
		"{apiVersion: example.com/v1, kind: App, status: {conditions: [{type: Stalled, status: 'True', reason: BadImage, message: no such}]}}": {
			Failed, "BadImage: no such",
		},
		"{apiVersion: example.com/v1, kind: App, status: {conditions: [{type: Available, status: 'False', reason: TooFew}]}}": {
			InProgress, "its condition Available is False: TooFew",
		},
		"{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, status: {conditions: [{type: Failed, status: 'True', reason: FailedJobs, message: a job failed}]}}": {
			Failed, "its condition Failed is True: FailedJobs: a job failed",
		},
		"{apiVersion: example.com/v1, kind: App, status: {conditions: [{type: Degraded, status: 'True', reason: Lost}, {type: Ready, status: 'True'}]}}": {
			Failed, "its condition Degraded is True: Lost",
		},
		"{apiVersion: example.com/v1, kind: App, status: {conditions: [{type: Degraded, status: 'False'}, {type: Ready, status: 'True'}]}}": {
			Done, "its condition Ready is True",
		},
		"{apiVersion: example.com/v1, kind: App, status: {conditions: [{type: Synced, status: 'False', reason: NoRights}]}}": {
			InProgress, "its condition Synced is False: NoRights",
		},
		"{apiVersion: example.com/v1, kind: App, status: {conditions: [{type: Healthy, status: Unknown}]}}": {
			InProgress, "its condition Healthy is Unknown",
		},
		"{apiVersion: argoproj.io/v1alpha1, kind: Application, status: {health: {status: Degraded, message: 1 pod crashes}}}": {
			Failed, "its health is Degraded: 1 pod crashes",
		},
		"{apiVersion: argoproj.io/v1alpha1, kind: Application, status: {health: {status: Progressing}}}": {InProgress, "its health is Progressing"},
		"{apiVersion: argoproj.io/v1alpha1, kind: Application, status: {health: {status: Healthy}}}":     {Done, "its health is Healthy"},
		"{apiVersion: apps.kruise.io/v1alpha1, kind: DaemonSet, status: {desiredNumberScheduled: 3, numberAvailable: 3, numberReady: 3, updatedNumberScheduled: 1}}": {
			InProgress, "updatedNumberScheduled is 1, and status.desiredNumberScheduled is 3",
		},
		"{apiVersion: apps.kruise.io/v1alpha1, kind: SidecarSet, status: {matchedPods: 3, readyPods: 2, updatedPods: 3}}": {
			InProgress, "readyPods is 2, and status.matchedPods is 3",
		},
		"{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, spec: {replicas: 2}, status: {replicas: 2, updatedReplicas: 2, conditions: [{type: Progressing, status: 'True', reason: GroupsProgressing}]}}": {
			InProgress, "its condition Progressing is True: GroupsProgressing",
		},
		"{apiVersion: example.com/v1, kind: App, status: {conditions: [{type: Progressing, status: 'True', reason: New}, {type: Available, status: 'True'}]}}": {
			Done, "its condition Available is True",
		},
		"{apiVersion: example.com/v1, kind: App, status: {phase: Unknown}}": {InProgress, "its phase is Unknown"},
		"{apiVersion: example.com/v1, kind: App, status: {ready: false}}":   {InProgress, "status.ready is false"},
		"{apiVersion: example.com/v1, kind: App, status: {ready: true}}":    {Done, "status.ready is true"},
	} {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
			t.Fatal(err)
		}
		fix(o.Object)
		if got := reportedBy(o); got != want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", text, got, want)
		}
	}
}

// fix makes numbers what a client reads.
func fix(fields map[string]any) {
	for name, value := range fields {
		switch v := value.(type) {
		case map[string]any:
			fix(v)
		case []any:
			for _, item := range v {
				if part, ok := item.(map[string]any); ok {
					fix(part)
				}
			}
		case float64:
			fields[name] = int64(v)
		}
	}
}

// TestStuckAndTerminating: what our controllers say does not pass by itself has failed, and what is being deleted is
// not done.
func TestStuckAndTerminating(t *testing.T) {
	s := Status{Conditions: []Condition{{Type: "Updated", Status: "False", Reason: "InvalidStrategy", Message: "maxUnavailable is no number"}}}
	if s.settle(&unstructured.Unstructured{}, nil); s.State != Failed || s.Reason != "InvalidStrategy: maxUnavailable is no number" {
		t.Errorf("%s: %s", s.State, s.Reason)
	}
	ending := &unstructured.Unstructured{}
	ending.SetDeletionTimestamp(new(metav1.Now()))
	ending.SetFinalizers([]string{"example.com/backup"})
	if s.settle(ending, nil); s.State != InProgress || s.Reason != "it is terminating, and waits for its finalizers: example.com/backup" {
		t.Errorf("%s: %s", s.State, s.Reason)
	}
	if got := terminating(ending, time.Now().Add(time.Minute)); !strings.Contains(got, "; its grace period ended ") {
		t.Error(got)
	}
}

// TestNotReportedYet: of a kind of others that is a few seconds old and has no status it is not known whether a
// controller has yet to look at it; an old one has none that reports.
func TestNotReportedYet(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		api  string
		age  time.Duration
		want State
	}{
		"young":                     {"example.com/v1", time.Second, InProgress},
		"old":                       {"example.com/v1", time.Hour, Unknown},
		"a kind without a status":   {"networking.k8s.io/v1", time.Second, Done},
		"a kind of a special group": {"jobset.x-k8s.io/v1", time.Second, InProgress},
	} {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": c.api, "kind": "Thing", "spec": map[string]any{"a": "b"}}}
		o.SetCreationTimestamp(metav1.NewTime(now.Add(-c.age)))
		o.SetGeneration(1)
		for _, s := range []Status{
			{without: true, childless: true, now: now},
			{childless: true, Update: &inspect.Entry{Number: 1}, now: now}, // its revision is there before any pod
		} {
			want := c.want
			if s.Update != nil && want == Unknown {
				want = Done // it is recorded
			}
			if s.settle(o, nil); s.State != want || c.want == InProgress && !strings.Contains(s.Reason, "reported on it yet") {
				t.Errorf("%s: %s: %s", name, s.State, s.Reason)
			}
		}
	}
}

// TestHeld: children that the strategy keeps are not waited for, once all other updates are done.
func TestHeld(t *testing.T) {
	for name, c := range map[string]struct {
		reason    string
		available int
		want      State
		line      string
	}{
		"it waits":        {"RolloutWaiting", 3, InProgress, "RolloutWaiting: 1 of 3 pods updated; 2 are held by the partition"},
		"it is held":      {"RolloutHeld", 3, Done, "1/3 pods updated, 3/3 available; 2 are held by the partition"},
		"one is down now": {"RolloutHeld", 2, InProgress, "RolloutHeld: 1 of 3 pods updated; 2 are held by the partition"},
	} {
		s := Status{Children: "pods", Rolled: 3, Total: 3, Available: c.available, Updated: 1, Conditions: []Condition{
			{Type: "Updated", Status: "False", Reason: c.reason, Message: "1 of 3 pods updated; 2 are held by the partition"},
		}}
		if s.settle(&unstructured.Unstructured{}, nil); s.State != c.want || !strings.HasSuffix(s.Line(), c.line) {
			t.Errorf("%s: %s: %s", name, s.State, s.Line())
		}
	}
}

// TestRuns: a parent whose children are not replaced, as a CronJob, is done when its spec is recorded, whatever came
// from older ones.
func TestRuns(t *testing.T) {
	s := Status{Parent: object.Parent{Name: "nightly"}, Runs: true, Children: "jobs", Update: &inspect.Entry{Number: 2, Name: "n-2"}, Updated: 1, Total: 3}
	if s.settle(&unstructured.Unstructured{}, nil); s.State != Done || s.Line() != "/nightly is done: 1 of 3 jobs come from the current revision" {
		t.Errorf("%s: %s", s.State, s.Line())
	}
	s.Update = nil
	if s.settle(&unstructured.Unstructured{}, nil); s.State != InProgress || s.Line() != "/nightly is in progress: it is recorded in no revision as it is now" {
		t.Errorf("%s: %s", s.State, s.Line())
	}
}

// TestWhatNobodyCanCreate: where a quota refuses a pod, the newest event says so, unless a pod was created since.
func TestWhatNobodyCanCreate(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web-uid"}, Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(2))},
	}
	event := func(name, uid, kind, reason, message string, ago time.Duration) *corev1.Event {
		return &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, InvolvedObject: corev1.ObjectReference{UID: types.UID(uid)},
			Type: kind, Reason: reason, Message: message, LastTimestamp: metav1.NewTime(now.Add(-ago)),
		}
	}
	events := []client.Object{
		event("1", "web-uid", "Warning", "FailedCreate", "an older reason", time.Hour),
		event("2", "web-uid", "Warning", "FailedCreate", "exceeded quota: pods", time.Minute),
		event("3", "web-uid", "Normal", "SuccessfulCreate", "Created pod: web-1", 0),
		event("4", "other", "Warning", "FailedCreate", "not this one", 0),
	}
	young := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-1", CreationTimestamp: metav1.NewTime(now),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))},
	}}
	failing := set.DeepCopy()
	failing.Status.Conditions = []appsv1.ReplicaSetCondition{{
		Type: "ReplicaFailure", Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: "a policy refuses",
	}}
	for name, c := range map[string]struct {
		objects []client.Object
		want    string
	}{
		"no pod":            {append(events, set), "new children: FailedCreate: exceeded quota: pods"},
		"a pod since":       {append(events, set, young), "Pod web-1: it is not scheduled yet"},
		"a condition":       {append(events, failing), "new children: FailedCreate: a policy refuses"},
		"nobody says why":   {[]client.Object{set}, "Labelled: 0/2"},
		"something else":    {[]client.Object{set, event("5", "web-uid", "Warning", "Tired", "zzz", 0)}, "Labelled: 0/2; Tired: zzz"},
		"a condition, pods": {[]client.Object{failing, young}, "new pods: FailedCreate: a policy refuses (and 1 more)"},
	} {
		t.Run(name, func(t *testing.T) {
			cl := inspecttest.Server(interceptor.Funcs{}, c.objects...)
			parent := &appsv1.ReplicaSet{}
			if err := cl.Get(t.Context(), client.ObjectKeyFromObject(set), parent); err != nil {
				t.Fatal(err)
			}
			s, err := Of(t.Context(), inspect.New(cl), parent, now)
			if err != nil || s.State != InProgress || s.Reason != c.want {
				t.Errorf("%+v, %v", s, err)
			}
		})
	}
}

// TestAllAreThere: an event that says that one could not be created is over when as many are there as are wanted.
func TestAllAreThere(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	ds := inspecttest.Web("web:1")
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "1"}, InvolvedObject: corev1.ObjectReference{UID: ds.UID},
		Type: corev1.EventTypeWarning, Reason: "FailedCreate", Message: "exceeded quota", LastTimestamp: metav1.NewTime(now),
	}
	for wanted, want := range map[int32]string{1: "Pod web-a", 2: "exceeded quota"} {
		ds.Status = appsv1.DaemonSetStatus{ObservedGeneration: ds.Generation, DesiredNumberScheduled: wanted, CurrentNumberScheduled: 1}
		c := inspecttest.Server(interceptor.Funcs{}, ds, event, inspecttest.StoredOf(t, ds, 1, "aaa"), inspecttest.Pod(ds, "web-a", "aaa"))
		s, err := Of(t.Context(), inspect.New(c), ds, now)
		if err != nil || s.State != InProgress || !strings.Contains(s.Reason, want) {
			t.Errorf("%d wanted: %+v, %v", wanted, s, err)
		}
	}
}

// TestCountedPods: a status that says all is well is not believed against the pods that are there: nobody may run who
// keeps it.
func TestCountedPods(t *testing.T) {
	o := &unstructured.Unstructured{}
	text := `{apiVersion: apps/v1, kind: DaemonSet, metadata: {generation: 1}, status: {observedGeneration: 1,
		desiredNumberScheduled: 3, currentNumberScheduled: 3, updatedNumberScheduled: 3, numberAvailable: 3, numberReady: 3}}`
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	fix(o.Object)
	for available, want := range map[int]State{3: Done, 2: InProgress, 0: InProgress} {
		s := Status{Children: "pods", Wanted: 3, Rolled: available, Updated: available, Total: available, Available: available}
		if s.settle(o, nil); s.State != want {
			t.Errorf("%d available: %s: %s", available, s.State, s.Reason)
		}
	}
}

// TestHeadlineOfSurplusPods: the parent asks for 5 pods, and not for those that surge or terminate.
func TestHeadlineOfSurplusPods(t *testing.T) {
	s := &Status{Children: "pods", Wanted: 5, Total: 7, Rolled: 7, Updated: 2, Available: 6, State: InProgress}
	if got, want := s.progress(), "2/5 pods updated, 5/5 available, 7 exist"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
