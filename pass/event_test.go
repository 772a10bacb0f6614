package pass_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/pass"
)

// Events: counted, cut, and never about a version of an object.

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, UID: types.UID("uid-of-" + name), ResourceVersion: "5", Labels: map[string]string{"app": "web"},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(web(), setKind)},
	}}
}

// TestManyEvents: a rollout over 300 pods is about twenty events and one that says how many more there were, and a
// warning in the middle of it is not left out.
func TestManyEvents(t *testing.T) {
	w := newWorld(t, nil, web())
	w.run = func(_ context.Context, p *pass.Pass) error {
		for i := range 300 {
			p.Normal(pod(fmt.Sprintf("web-%d", i)), "SuccessfulDelete", "Delete", "Deleted pod: web-%d (revision 3)", i)
			if i == 200 {
				p.Warn(pod("web-200"), "FailedDelete", "Delete", "Error deleting pod web-200: denied")
			}
		}
		return nil
	}
	result, err := w.reconcile()
	if err != nil {
		t.Fatal(err)
	}
	if got := len(w.events.Events("SuccessfulDelete")); got != 20 || len(w.events.Events("FailedDelete")) != 1 {
		t.Errorf("%d events, warnings %v", got, w.events.Events("FailedDelete"))
	}
	if result.RequeueAfter == 0 {
		t.Fatal("nobody will say how many more there were")
	}
	w.run = func(context.Context, *pass.Pass) error { return nil }
	w.clock.Step(result.RequeueAfter)
	if result, err = w.reconcile(); err != nil || result.RequeueAfter != 0 {
		t.Errorf("%+v, %v", result, err)
	}
	got := w.events.Events("SuccessfulDelete")
	if want := "Normal SuccessfulDelete 280 more, the last one: Deleted pod: web-299 (revision 3)"; len(got) != 21 || got[20] != want {
		t.Errorf("%d events, the last one %q", len(got), got[len(got)-1])
	}
}

// TestManyWarnings: warnings about many children become one about the parent, which the recorder counts; of each reason
// there is one, however many came before.
func TestManyWarnings(t *testing.T) {
	w, about := newWorld(t, nil, web()), &regarding{}
	w.c.Recorder = about
	w.run = func(_ context.Context, p *pass.Pass) error {
		for i := range 100 {
			p.Warn(pod(fmt.Sprintf("web-%d", i)), "FailedDelete", "Delete", "denied")
		}
		p.Warn(nil, "RecordFailed", "Record", "denied")
		return nil
	}
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	alike := map[string]int{}
	for _, e := range about.events {
		alike[e.reason+" "+e.related]++
	}
	if len(alike) != 27 || alike["FailedDelete "] != 75 || alike["RecordFailed "] != 1 {
		t.Errorf("%d different events: %v", len(alike), alike)
	}
}

// TestReferences: what an event is about has no resourceVersion, or no two events of one kind would be joined, and a
// text is cut to what the API server takes.
func TestReferences(t *testing.T) {
	w, about := newWorld(t, nil, web()), &regarding{}
	w.c.Recorder = about
	w.run = func(_ context.Context, p *pass.Pass) error {
		p.Warn(pod("a"), "FailedCreate", "Create", "%s", strings.Repeat("ü", 900))
		return nil
	}
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	e := about.events[0]
	if e.about != "ReplicaSet default/web web-uid " || e.related != "Pod default/a uid-of-a " {
		t.Errorf("about %q and %q", e.about, e.related)
	}
	if len(e.note) > 1024 || len(e.note) < 900 || !strings.HasSuffix(e.note, "ü…") {
		t.Errorf("%d bytes: …%s", len(e.note), e.note[len(e.note)-10:])
	}
}

// TestAnotherCause: a warning that is repeated tells what is wrong now, not what was when it began. What
// the recorder joins is what refers to the same.
func TestAnotherCause(t *testing.T) {
	w, about := newWorld(t, nil, web()), &regarding{}
	w.c.Recorder = about
	told := func() string {
		first := map[string]string{}
		for _, e := range about.events {
			if _, joined := first[e.about+e.related]; !joined {
				first[e.about+e.related] = e.note
			}
		}
		last := about.events[len(about.events)-1]
		return fmt.Sprint(first[last.about+last.related], " in ", len(first))
	}
	for _, step := range []struct {
		after   time.Duration
		version string
		note    string
		want    string
	}{
		{0, "1", "quota", "quota in 1"},
		{time.Second, "1", "quota", "quota in 1"},
		{time.Second, "2", "policy", "quota in 1"}, // a moment later, and not yet
		{time.Minute, "2", "policy", "policy in 2"},
		{time.Minute, "3", "policy\nat length", "policy in 2"},
		{time.Minute, "3", "registry", "registry in 3"},
		{time.Minute, "3", "quota", "registry in 3"}, // the parent has not changed since: the recorder would join it
		{time.Minute, "4", "quota", "quota in 4"},
		{time.Minute, "5", "quota (request 1a2b)", "quota (request 1a2b) in 5"},
		{time.Minute, "6", "quota (request 3c4d)", "quota (request 1a2b) in 5"}, // what names the request is no cause
		{time.Minute, "6", `pods "web-x9k2f" is denied`, `pods "web-x9k2f" is denied in 6`},
		{time.Minute, "7", `pods "web-ksmcc" is denied`, `pods "web-x9k2f" is denied in 6`}, // nor is the name of a child
		{10 * time.Minute, "4", "webhook", ""},                                              // the recorder has forgotten, and makes a new one of it
	} {
		w.clock.Step(step.after)
		w.run = func(_ context.Context, p *pass.Pass) error {
			p.Parent.SetResourceVersion(step.version)
			p.Warn(nil, "FailedCreate", "Create", "%s", step.note)
			return nil
		}
		if _, err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
		if got := told(); step.want != "" && got != step.want {
			t.Errorf("%s at version %s: told %s, want %s", step.note, step.version, got, step.want)
		}
	}
	if last := about.events[len(about.events)-1]; !strings.HasSuffix(last.about, "web-uid ") {
		t.Errorf("the first of new ones is about %q", last.about)
	}
}

// TestAnotherText: an event about no child tells what is so now, also a moment after it told something else: a rollout
// that waits for one pod, and then for the next one.
func TestAnotherText(t *testing.T) {
	w, about := newWorld(t, nil, web()), &regarding{}
	w.c.Recorder = about
	for version, note := range []string{"waits for web-3", "waits for web-3", "waits for web-2", "waits for web-2"} {
		w.clock.Step(time.Second)
		w.run = func(_ context.Context, p *pass.Pass) error {
			p.Parent.SetResourceVersion(strconv.Itoa(version))
			p.Normal(nil, "RolloutWaiting", "Roll", "%s", note)
			return nil
		}
		if _, err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
	}
	first := map[string]string{} // the recorder joins what is about the same, and tells the first text
	for _, e := range about.events {
		if _, joined := first[e.about]; !joined {
			first[e.about] = e.note
		}
	}
	told := slices.Sorted(maps.Values(first))
	if want := []string{"waits for web-2", "waits for web-3"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

// TestEventsComeBack: after a while there is room again.
func TestEventsComeBack(t *testing.T) {
	w := newWorld(t, nil, web())
	made := 0
	w.run = func(_ context.Context, p *pass.Pass) error {
		for range 50 {
			made++
			p.Normal(pod(fmt.Sprintf("web-%d", made)), "SuccessfulCreate", "Create", "Created pod")
		}
		return nil
	}
	for range 2 {
		if _, err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
		w.clock.Step(5 * time.Minute)
	}
	if got := len(w.events.Events()); got < 40 || got > 46 {
		t.Errorf("%d events in five minutes", got)
	}
}

// regarding is a recorder that notes what events are about.
type regarding struct{ events []noted }

type noted struct{ about, related, reason, note string }

func (r *regarding) Eventf(about, related runtime.Object, _, reason, _, note string, args ...any) {
	name := func(o runtime.Object) string {
		if o == nil {
			return ""
		}
		m := o.(client.Object)
		return fmt.Sprintf("%s %s/%s %s %s", o.GetObjectKind().GroupVersionKind().Kind, m.GetNamespace(), m.GetName(), m.GetUID(), m.GetResourceVersion())
	}
	r.events = append(r.events, noted{name(about), name(related), reason, fmt.Sprintf(note, args...)})
}
