package revision_test

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/cairn-dev/cairn/revision"
)

// TestSize: the estimate follows what snapshots take on the heap, between half and three times of it.
func TestSize(t *testing.T) {
	target := revision.StrategicMerge(revision.Typed[appsv1.DaemonSet](), revision.Path{"spec", "template"})
	for name, variables := range map[string]int{"small": 1, "large": 200} {
		ds := &appsv1.DaemonSet{}
		c := corev1.Container{Name: "web", Image: "nginx:1.29"}
		for range variables {
			c.Env = append(c.Env, corev1.EnvVar{Name: "VARIABLE", Value: strings.Repeat("x", 40)})
		}
		ds.Spec.Template.Spec.Containers = []corev1.Container{c}
		source, err := target.Snapshot(ds)
		if err != nil {
			t.Fatal(err)
		}
		data := source.Data()
		const many = 300
		kept := make([]*revision.Snapshot, many)
		before := heap()
		for i := range kept {
			if kept[i], err = target.Decode(append([]byte(nil), data...)); err != nil {
				t.Fatal(err)
			}
			revision.Compare(source, kept[i]) // leaves the canonical form behind
		}
		took := int(heap()-before) / many
		if got := kept[0].Size(); got < took/2 || got > 3*took {
			t.Errorf("%s: %d bytes of data are estimated at %d and take %d", name, len(data), got, took)
		}
		runtime.KeepAlive(kept)
	}
}

// TestSizeOf: so does that of any decoded JSON.
func TestSizeOf(t *testing.T) {
	const text = `{"metadata": {"name": "web-0", "labels": {"app": "web", "tier": "front"}}, "spec": {"replicas": 3, "ratio": 0.5,
		"paused": false, "note": null, "containers": [{"name": "main", "image": "nginx:1.29", "args": ["-a", "-b", "--verbose"]}]}}`
	const many = 2000
	kept := make([]map[string]any, many)
	before := heap()
	for i := range kept {
		if err := json.Unmarshal([]byte(text), &kept[i]); err != nil {
			t.Fatal(err)
		}
	}
	took := int(heap()-before) / many
	if got := revision.SizeOf(kept[0]); got < took/2 || got > 3*took {
		t.Errorf("it is estimated at %d and takes %d", got, took)
	}
	runtime.KeepAlive(kept)
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
