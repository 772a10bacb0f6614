package fault_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cairn-dev/cairn/proof/fault"
)

// This file refuses, for good, what controllers write, and bounds what they ask for meanwhile: as many tries as the
// work queue's back-off allows, and no more writes of statuses and events than tries. A text that differs each time
// used to wake a parent by its own status, and one ReplicaSet made 120 creates a second.

// TestAdmission is what policies and webhooks do to controllers: refuse, change and delay what they write. Upstream's
// controllers pass the same tests, where they have the kind and keep the promise.
func TestAdmission(t *testing.T) {
	t.Parallel()
	a := newLabs(t).withCats(t)
	t.Run("refused", a.testRefused)
	t.Run("beside", a.testBeside)
	t.Run("changed", a.testChanged)
	t.Run("dry runs", a.testDryRuns)
	t.Run("slow", a.testSlow)
}

// refusedCase is a write that is refused for good.
type refusedCase struct {
	// settled is true if the parents have all their pods before the refusals begin.
	settled bool
	// orphans is true if there is a pod to be adopted before the parents are there.
	orphans bool
	// refuse refuses, and act is what makes each parent want the write.
	refuse func(*lab)
	act    func(*lab, parent)
	// short is true if the short run has it, for cairn alone.
	short bool
	// try matches the write.
	try func(fault.Request) bool
	// upstreams says why upstream's controllers may do more; empty if they may not.
	upstreams string
	// kinds are the parents that want it; nil means all.
	kinds []string
}

func refusedCases() map[string]refusedCase {
	differing := func(verb registrationv1.OperationType, resource string) func(*lab) {
		return func(l *lab) { l.review(review{verb: verb, resource: resource, deny: true}) }
	}
	always := func(verb registrationv1.OperationType) func(*lab) {
		return func(l *lab) { l.deny(verb, "pods", "true", func() error { return l.probe(verb, "pods") }) }
	}
	create := func(l *lab, p parent) { l.create(p, nil) }
	edit := func(l *lab, p parent) {
		if p.name == "replicaset" {
			l.patch(p, `{"spec":{"replicas":0}}`)
			return
		}
		l.image(p, "app:2")
	}
	deletes := writes("delete", "pods")
	return map[string]refusedCase{
		"creates, in other words each time": {short: true, refuse: differing(registrationv1.Create, "pods"), act: create, try: writes("create", "pods")},
		"creates, in the same words":        {refuse: always(registrationv1.Create), act: create, try: writes("create", "pods")},
		"deletes, in other words each time": {short: true, settled: true, refuse: differing(registrationv1.Delete, "pods"), act: edit, try: deletes},
		"deletes, in the same words":        {settled: true, refuse: always(registrationv1.Delete), act: edit, try: deletes},
		"adoptions, in other words each time": {
			orphans: true, refuse: differing(registrationv1.Update, "pods"), act: create, try: writes("patch", "pods"),
			upstreams: "its DaemonSet controller tries each adoption twice a pass",
		},
		"revisions, in other words each time": {
			short: true, settled: true, refuse: differing(registrationv1.Create, "controllerrevisions"), act: edit,
			try: writes("create", "controllerrevisions"), kinds: []string{"daemonset", "statefulset", "catset"},
		},
		"creates, by a webhook that does not answer in time": {
			refuse: func(l *lab) {
				l.review(review{verb: registrationv1.Create, resource: "pods", slow: 5 * time.Second, timeout: 1})
			}, act: create, try: writes("create", "pods"),
		},
	}
}

func (a *labs) testRefused(t *testing.T) {
	for name, c := range refusedCases() {
		for _, who := range []string{"cairn", "upstream"} {
			if !full && (who == "upstream" || !c.short) || who == "upstream" && c.upstreams != "" {
				continue
			}
			t.Run(who+" is refused "+name, func(t *testing.T) {
				t.Parallel()
				c.run(a.lab(t, who == "upstream"), parentsOf(who == "upstream", 1))
			})
		}
	}
}

func (c *refusedCase) run(l *lab, all []parent) {
	l.Helper()
	if c.orphans {
		for _, p := range all {
			l.orphan(p)
		}
	}
	if c.settled {
		for _, p := range all {
			l.create(p, nil)
		}
		for _, p := range all {
			l.until("the first pods", func() error { return l.ready(p, p.pods, "app:1") })
		}
	}
	c.refuse(l)
	began := l.now()
	for _, p := range all {
		c.act(l, p)
	}
	for _, p := range all {
		l.until("the first try", func() error {
			if c.wants(p) && l.count(began, p, c.try) == 0 {
				return fmt.Errorf("%s has not tried, so the rest shows nothing", p.name)
			}
			return nil
		})
	}
	time.Sleep(window() / 2) //nolint:forbidigo // nothing marks the end of a time in which little may happen
	half := l.now()
	time.Sleep(window() / 2) //nolint:forbidigo // the same
	for _, p := range all {
		l.bounded(began, p, began.allowed(), c.try)
		l.bounded(half, p, lateTries, c.try)
	}
}

// wants reports whether the parent wants the write that is refused.
func (c *refusedCase) wants(p parent) bool {
	return c.kinds == nil || slices.Contains(c.kinds, p.name)
}

// lateTries is how many tries there may be in the second half of the window, whatever the machine does: the pause
// before each is twice the one before, so there are one or two. Who does not wait longer and longer tries as often as
// in the first half.
const lateTries = 3

// bounded fails the test if there were more tries than that, or more writes beside them.
func (l *lab) bounded(since mark, p parent, most int, try func(fault.Request) bool) {
	l.Helper()
	tries, statuses, events := l.count(since, p, try), l.count(since, p, isStatus), l.count(since, p, isEvent)
	text := fmt.Sprintf("%s: %d tries, %d writes of the status and %d of events in %s, of each at most %d are allowed",
		p.name, tries, statuses, events, time.Since(since.time).Round(time.Second), most)
	if tries > most || statuses > most || events > most {
		l.Error(text)
	} else {
		l.Log(text)
	}
}

// orphan makes a ready pod that the parent will want to adopt.
func (l *lab) orphan(p parent) {
	l.Helper()
	pod := l.pod(p.name+"-0", map[string]string{"app": p.name})
	pod.Spec.NodeName = "node-0"
	pod.Spec.Hostname = pod.Name
	if _, err := l.client.CoreV1().Pods(l.namespace).Create(l.Context(), pod, metav1.CreateOptions{}); err != nil {
		l.Fatal(err)
	}
	l.until("the orphan is ready", func() error {
		for _, pod := range l.pods(p) {
			for _, c := range pod.Status.Conditions {
				if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
					return nil
				}
			}
		}
		return fmt.Errorf("it is not")
	})
}
