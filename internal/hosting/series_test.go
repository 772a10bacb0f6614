package hosting

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// series returns the names of the metrics in which a controller of that name is, with their labels.
func series(t *testing.T, name string) (found []string) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetValue() == name {
					found = append(found, fmt.Sprint(family.GetName(), m.GetLabel()))
					break
				}
			}
		}
	}
	slices.Sort(found)
	return found
}

// TestDeletedControllerLeavesNoSeries: of another one all stay, and of one that is only edited.
func TestDeletedControllerLeavesNoSeries(t *testing.T) {
	inWorld(t, func(w *world) {
		w.host()
		if err := w.client.Create(w.ctx, configMap("a")); err != nil {
			t.Fatal(err)
		}
		gone, stays := w.describe("measured-gone"), w.describe("measured-stays")
		settle(time.Second)
		const one, other = "CompositeController-measured-gone", "CompositeController-measured-stays"
		before := series(t, other)
		if got := series(t, one); len(got) < 10 || len(before) < len(got) || !strings.Contains(fmt.Sprint(got), "workqueue_") {
			t.Fatalf("it is not measured: %q", got)
		}
		w.edit(stays)
		settle(time.Second)
		w.remove(gone)
		settle(time.Second)
		if got := series(t, one); len(got) > 0 {
			t.Errorf("the controller is gone, and there is %q", got)
		}
		if got := series(t, other); len(got) < len(before) {
			t.Errorf("another one had %q, and has %q", before, got)
		}
	})
}
