package fault_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/cairn-dev/cairn/proof/fault"
	"github.com/cairn-dev/cairn/sandbox"
)

// This file takes the API server and etcd away in the middle of rollouts of all kinds, and brings them back. Every
// watch ends, and no request succeeds meanwhile; nothing may be lost, no budget broken, and no manager ends. A
// recording has a gap then, so package check cannot judge: what counts is which pods there are before, during and
// after.

// outage is a way to go away.
type outage struct {
	name string
	away func(context.Context, *sandbox.Sandbox) error
	// full is true if only the long run has it.
	full bool
}

// gone is how long what is gone stays away.
func gone() {
	d := 2 * time.Second
	if full {
		d = 30 * time.Second
	}
	time.Sleep(d) //nolint:forbidigo // the outage
}

func outages() []outage {
	return []outage{
		{name: "the API server and etcd", away: func(ctx context.Context, s *sandbox.Sandbox) (err error) {
			return s.RestartAPIServer(ctx, func() { err = s.RestartEtcd(ctx, gone) })
		}},
		{name: "the API server for a moment", full: true, away: func(ctx context.Context, s *sandbox.Sandbox) error {
			return s.RestartAPIServer(ctx, func() {})
		}},
		{name: "etcd", full: true, away: func(ctx context.Context, s *sandbox.Sandbox) error { return s.RestartEtcd(ctx, gone) }},
	}
}

func TestAnOutageInMidRollout(t *testing.T) {
	for _, o := range outages() {
		if o.full && !full {
			continue
		}
		t.Run(o.name, func(t *testing.T) {
			l := newLabs(t).withCats(t).lab(t, false)
			l.outage(func() error { return o.away(t.Context(), l.sandbox) })
		})
	}
}

// slowPods are ready a while after they run, so that there is a middle of a rollout.
const slowPods = `{"spec":{"template":{"metadata":{"annotations":{"` + sandbox.ReadyAfterAnnotation + `":"1s"}},"spec":{"containers":[{"name":"main","image":"app:2"}]}}}}`

func (l *lab) outage(away func() error) {
	l.Helper()
	all := oneOfEach(4)
	for _, p := range all {
		l.create(p, nil)
	}
	for _, p := range all {
		l.until("the first pods", func() error { return l.ready(p, p.pods, "app:1") })
	}
	first := l.uidsOf(all)
	broken := l.watchBudgets(all)
	began := l.now()
	for _, p := range all {
		if p.name == "replicaset" {
			l.patch(p, `{"spec":{"replicas":8}}`)
			continue
		}
		l.patch(p, slowPods)
	}
	l.until("the middle of every rollout", func() error { return l.under(all) })
	made := l.uidsOf(all)
	must(l, away())
	for i := range all {
		p := &all[i]
		image := "app:2"
		if p.name == "replicaset" {
			p.pods, image = 8, "app:1"
		}
		l.until("the end of the rollout", func() error { return l.ready(*p, p.pods, image) })
	}
	for _, text := range broken() {
		l.Error(text)
	}
	last := l.uidsOf(all)
	for uid, pod := range made {
		if _, stays := last[uid]; !stays && (first[uid] == "" || strings.HasPrefix(pod, "replicaset")) {
			l.Errorf("%s was as it should be, and is gone", pod)
		}
	}
	l.revisionsCount()
	for _, p := range all {
		l.Logf("%s: %d pods asked for, %d deletes", p.name, l.count(began, p, writes("create", "pods")), l.count(began, p, done("delete")))
		if n, most := l.count(began, p, done("delete")), p.pods; n > most || p.name == "replicaset" && n > 0 {
			l.Errorf("%s has deleted %d pods, want %d at most\n%s", p.name, n, most, l.tail())
		}
	}
}

// done matches what the API server has done, as far as one was told.
func done(verb string) func(fault.Request) bool {
	match := writes(verb, "pods")
	return func(r fault.Request) bool { return match(r) && strings.HasPrefix(r.Answer, "2") }
}

// uidsOf returns the names of the parents' pods by UID.
func (l *lab) uidsOf(all []parent) map[string]string {
	out := map[string]string{}
	for _, p := range all {
		for _, pod := range l.pods(p) {
			out[string(pod.UID)] = pod.Name
		}
	}
	return out
}

// under returns nil if every rollout has begun, and none is over.
func (l *lab) under(all []parent) error {
	for _, p := range all {
		if p.name == "replicaset" {
			continue // it is over too soon
		}
		n := 0
		for _, pod := range l.pods(p) {
			if pod.Spec.Containers[0].Image == "app:2" {
				n++
			}
		}
		if n == 0 {
			return fmt.Errorf("the rollout of %s has not begun", p.name)
		}
	}
	return nil
}

// watchBudgets looks at the pods of all parents again and again, from another client. The function that it returns ends
// that, and says where fewer pods were ready than may be, which is all but one.
func (l *lab) watchBudgets(all []parent) (broken func() []string) {
	ctx, cancel := context.WithCancel(l.Context())
	found := make(chan []string, 1)
	least := map[string]int{}
	for _, p := range all {
		least[p.name] = p.pods - 1
		if p.name == "replicaset" {
			least[p.name] = p.pods
		}
	}
	go func() {
		var out []string
		for ctx.Err() == nil {
			list, err := l.client.CoreV1().Pods(l.namespace).List(ctx, metav1.ListOptions{})
			if err == nil {
				out = append(out, below(least, list.Items)...)
			}
			time.Sleep(poll) //nolint:forbidigo // between two looks
		}
		found <- out
	}()
	return func() []string {
		cancel()
		out := <-found
		slices.Sort(out)
		return slices.Compact(out)
	}
}

// below says which parents have fewer ready pods than they may.
func below(least map[string]int, pods []corev1.Pod) (out []string) {
	n := map[string]int{}
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil && podutil.IsPodReady(&pod) {
			n[pod.Labels["app"]]++
		}
	}
	for name, want := range least {
		if n[name] < want {
			out = append(out, fmt.Sprintf("only %d pods of %s were ready at some moment, want %d at least", n[name], name, want))
		}
	}
	return out
}

// revisionsCount checks that nothing was recorded twice, and nothing lost.
func (l *lab) revisionsCount() {
	l.Helper()
	list, err := l.client.AppsV1().ControllerRevisions(l.namespace).List(l.Context(), metav1.ListOptions{})
	if err != nil {
		l.Fatal(err)
	}
	var got []string
	for _, r := range list.Items {
		got = append(got, fmt.Sprintf("%s=%d", r.Labels["app"], r.Revision))
	}
	slices.Sort(got)
	if want := []string{"daemonset=1", "daemonset=2", "statefulset=1", "statefulset=2"}; !slices.Equal(got, want) {
		l.Errorf("the revisions are %v, want %v", got, want)
	}
}
