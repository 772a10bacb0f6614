package daemonset

// Deleting and relabelling pods: with preconditions, with a back-off for those that failed, and no pod more than meant.

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cairn-dev/cairn/internal/fakeserver"
	"github.com/cairn-dev/cairn/pass"
	"github.com/cairn-dev/cairn/revision"
)

func TestDelete(t *testing.T) {
	one := pod("n1", hashOld, func(p *corev1.Pod) { p.ResourceVersion = "" })
	for name, c := range map[string]struct {
		change func(*deletion, *world)
		gone   bool
		err    bool
		event  string
	}{
		"as planned":   {func(*deletion, *world) {}, true, false, "Normal SuccessfulDelete Deleted pod: n1-old (why)"},
		"changed":      {func(d *deletion, _ *world) { d.pod.ResourceVersion = "1" }, false, false, ""},
		"replaced":     {func(d *deletion, _ *world) { d.pod.UID = "before" }, false, false, ""},
		"gone already": {func(d *deletion, w *world) { _ = w.Raw.Delete(t.Context(), d.pod.DeepCopy()) }, true, false, ""},
		"refused":      {func(_ *deletion, w *world) { w.Before = fakeserver.Refuse("delete", "Pod", errors.New("boom")) }, false, true, "Warning FailedDelete Error deleting pod n1-old: boom"},
		"it failed":    {func(d *deletion, _ *world) { d.failed = true }, true, false, "Warning FailedDaemonPod Found failed daemon pod default/n1-old on node n1, will try to kill it"},
		"it ended":     {func(d *deletion, _ *world) { d.succeeded = true }, true, false, "Normal SucceededDaemonPod Found succeeded daemon pod default/n1-old on node n1, will try to delete it"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, one.DeepCopy())
			d := deletion{pod: w.pod("n1-old"), node: "n1", reason: "why"}
			version := d.pod.ResourceVersion
			c.change(&d, w)
			err := w.act(given(agent(), nil), &plan{Work: pass.Work[creation, deletion]{Deletes: []deletion{d}}})
			if (err != nil) != c.err || (len(w.pods()) == 0) != c.gone {
				t.Errorf("%d pods, %v", len(w.pods()), err)
			}
			deletes := w.Calls("delete")
			if len(deletes) != 1 || deletes[0].UID != string(d.pod.UID) || deletes[0].Version != d.pod.ResourceVersion || version == "" {
				t.Errorf("requests %+v", deletes)
			}
			if c.event == "" != (len(w.events.Events()) == 0) || c.event != "" && !slices.Contains(w.events.Events(), c.event) {
				t.Errorf("events %q", w.events.Events())
			}
		})
	}
}

// TestBackOff: a failed pod that is replaced begins a pause of its node, for the revision that is asked for. Deletes
// for other reasons begin none.
func TestBackOff(t *testing.T) {
	w := newWorld(t)
	ds := agent()
	p := w.r.NewPass(ds)
	for _, d := range []deletion{
		{pod: pod("n1", hashOld), node: "n1", failed: true, hash: hashNew},
		{pod: pod("n3", hashOld), node: "n3"},
		{pod: pod("n3", hashNew), node: "n3", succeeded: true},
	} {
		if err := w.r.act(t.Context(), p, &plan{from: given(ds, nil), Work: pass.Work[creation, deletion]{Deletes: []deletion{d}}}); err != nil {
			t.Fatal(err)
		}
	}
	for node, want := range map[string]time.Duration{"n1": time.Second, "n2": 0, "n3": 0} {
		if got := p.Pause(hashNew, node).Length; got != want {
			t.Errorf("the next one of %s has to wait %s, want %s", node, got, want)
		}
	}
	if got := p.Pause("newer", "n1").Length; got != 0 {
		t.Errorf("one of another revision has to wait %s", got)
	}
}

// TestRelabel touches the pods of the duplicate and no others (kubernetes#111280).
func TestRelabel(t *testing.T) {
	w := newWorld(t, pod("n1", "twin"), pod("n2", "older"), pod("n3", hashNew), pod("n4", "", named("n4-none")), pod("n5", "twin", terminating))
	o := &observed{ds: agent(), selector: labels.Everything(), pods: w.pods()}
	relabel := w.relabel(o)
	if err := relabel(t.Context(), revision.Revision{Name: "agent-twin", Hash: "twin"}, revision.Revision{Name: "agent-old", Hash: hashOld}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"patch n1-twin", "patch n5-twin"}, w.WritesTo("Pod")); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	for _, c := range w.Writes() {
		if c.UID == "" || c.Version == "" {
			t.Errorf("no precondition in %s", c.Body)
		}
	}
	want := map[string]string{"n1-twin": hashOld, "n2-older": "older", "n3-new": hashNew, "n4-none": "", "n5-twin": hashOld}
	for _, p := range w.pods() {
		if got := p.Labels["controller-revision-hash"]; got != want[p.Name] || p.Labels["app"] != "agent" {
			t.Errorf("%s is labelled %v", p.Name, p.Labels)
		}
	}
	// The rest of the pass must know: otherwise it replaces these pods, or truncates the revision that they name by now.
	for _, p := range o.pods {
		if got := p.Labels["controller-revision-hash"]; got != want[p.Name] {
			t.Errorf("the pass sees %s labelled %q", p.Name, got)
		}
	}
	if live := pass.Live(o.children); !live.Has(revision.Revision{Hash: hashOld}) || live.Has(revision.Revision{Hash: "other"}) {
		t.Error("the revision that pods were pointed at does not count as live")
	}

	// Nothing to do for twins that share a label, or that have none.
	w.Forget()
	for _, from := range []string{hashNew, ""} {
		if err := relabel(t.Context(), revision.Revision{Hash: from}, revision.Revision{Hash: hashNew}); err != nil || len(w.WritesTo("Pod")) != 0 {
			t.Errorf("wrote %v, %v", w.WritesTo("Pod"), err)
		}
	}
}

// The duplicate stays if a pod of it has changed, or was deleted: another manager may have created its successor.
// Whatever became of the request, nothing is truncated in that pass: see TestNoTruncationWithDuplicates.
func TestRelabelErrors(t *testing.T) {
	for name, c := range map[string]struct {
		before, after func(fakeserver.Call) error
		err           bool
	}{
		"gone":     {fakeserver.Refuse("patch", "Pod", apierrors.NewNotFound(schema.GroupResource{}, "x")), nil, true},
		"conflict": {fakeserver.Refuse("patch", "Pod", apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("changed"))), nil, true},
		"lost":     {nil, fakeserver.Refuse("patch", "Pod", apierrors.NewTimeoutError("the response got lost", 0)), true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, pod("n1", "twin"))
			o := &observed{ds: agent(), selector: labels.Everything(), pods: w.pods()}
			w.Before, w.After = c.before, c.after
			err := w.relabel(o)(t.Context(), revision.Revision{Hash: "twin"}, revision.Revision{Hash: hashOld})
			if (err != nil) != c.err {
				t.Error(err)
			}
			if !pass.Live(o.children).Has(revision.Revision{Hash: "twin"}) {
				t.Error("the revision that the pod may still come from is not live")
			}
		})
	}
}
