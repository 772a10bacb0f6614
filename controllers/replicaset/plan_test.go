package replicaset

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/cairn-dev/cairn/pass"
)

// TestPlans shows whole plans, with their reasons, as one golden file.
func TestPlans(t *testing.T) {
	first := names("web", "web-uid", 3, nil, func(string) bool { return false }, nil)
	var b strings.Builder
	for _, c := range []struct {
		name string
		f    facts
	}{
		{"nothing is there", factsOf(web(3))},
		{"one is missing, and its name is still held by the one that goes", factsOf(web(2), pod(first[0], going), pod(first[1]))},
		{"an upstream pod fills a place", factsOf(web(2), pod("web-xyz42"))},
		{"ended pods do not count, and hold their names", factsOf(web(1), pod(first[0], phase(corev1.PodFailed)), pod(first[1], phase(corev1.PodSucceeded)))},
		{"all is well", factsOf(web(2), pod("a"), pod("b"))},
		{"two too many", factsOf(web(1), pod("a"), pod("b", unready), pod("c", pending, on("")))},
		{"two of one node", factsOf(web(2), pod("a", on("x")), pod("b", on("y")), pod("c", on("x"), old(2*time.Hour), readyFor(2*time.Hour)))},
		{"down to nothing", factsOf(web(0), pod("a"), pod("b"))},
		{"what goes already is not replaced by another deletion", factsOf(web(1), pod("a"), pod("b", going), pod("c", going))},
		{"ready, and not for long enough", factsOf(web(3, minReady(30)), pod("a"), pod("b", readyFor(10*time.Second)), pod("c", readyFor(25*time.Second)))},
		{"a label is missing", factsOf(web(1, func(set *appsv1.ReplicaSet) {
			set.Spec.Template.Labels = map[string]string{"app": "web", "tier": "front"}
		}), pod("a"))},
		{"an ended pod that goes is not waited for", factsOf(web(0), pod("a", going, phase(corev1.PodFailed)), pod("b", going))},
	} {
		fmt.Fprintf(&b, "# %s\n%s\n", c.name, makePlan(c.f).text())
	}
	golden(t, "plans.golden", b.String())
}

// TestBurst: one pass writes so much, and not more.
func TestBurst(t *testing.T) {
	if p := makePlan(factsOf(web(10_000))); len(p.Creates) != pass.MostWrites || p.missing != 10_000 {
		t.Errorf("%d creates, %d missing", len(p.Creates), p.missing)
	}
	var pods []*corev1.Pod
	for i := range 2 * pass.MostWrites {
		pods = append(pods, pod(fmt.Sprint(i)))
	}
	if p := makePlan(factsOf(web(1), pods...)); len(p.Deletes) != pass.MostWrites || p.surplus != 2*pass.MostWrites-1 {
		t.Errorf("%d deletes, %d too many", len(p.Deletes), p.surplus)
	}
}

// TestNames: names have the usual shape, differ, and are the same whoever asks; a parent that is made again has others.
func TestNames(t *testing.T) {
	free := func(string) bool { return false }
	got := names("web", "web-uid", 20_000, nil, free, nil)
	seen := map[string]bool{}
	for _, name := range got {
		if seen[name] || !strings.HasPrefix(name, "web-") || len(name) != len("web-")+5 || strings.ContainsAny(name[4:], "aeiou013") {
			t.Fatalf("name %q", name)
		}
		seen[name] = true
	}
	if diff := cmp.Diff(got[:3], names("web", "web-uid", 3, nil, free, nil)); diff != "" {
		t.Errorf("fewer names are not the first ones (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(got[1:4], names("web", "web-uid", 3, nil, func(name string) bool { return name == got[0] }, nil)); diff != "" {
		t.Errorf("a taken name is not passed over (-want +got):\n%s", diff)
	}
	for _, name := range names("web", "other-uid", 1000, nil, free, nil) {
		if seen[name] && name == got[0] {
			t.Errorf("another UID has the name %s", name)
		}
	}
	long := names(strings.Repeat("x", 200), "uid", 2, nil, free, nil)
	if len(long[0]) != 63 || long[0] == long[1] {
		t.Errorf("long names %q", long)
	}
	// The contract between two versions of cairn that run at once, and over an upgrade.
	if diff := cmp.Diff([]string{"web-z8pxj"}, got[:1]); diff != "" {
		t.Errorf("the sequence changed (-want +got):\n%s", diff)
	}
}
