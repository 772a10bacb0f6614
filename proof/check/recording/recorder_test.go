package recording_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/cairn-dev/cairn/proof/check/recording"
)

// This file tests the recorder on watches that the test speaks for; proof/check/e2e has the real ones.

const namespace = "ns"

type recorded struct {
	*recording.Recorder

	pods, claims chan watch.Event
}

// record starts a recorder of pods, listed at 10, and claims, listed at 12. The mark of Sync gets 20.
func record(t *testing.T) recorded {
	t.Helper()
	return recordWith(t, nil)
}

// recordWith is record with watches of pods, of a lifetime in seconds, that the test makes.
func recordWith(t *testing.T, watchPods func(seconds int64) watch.Interface) recorded {
	t.Helper()
	claims := corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		pods: "PodList", claims: "PersistentVolumeClaimList", corev1.SchemeGroupVersion.WithResource("configmaps"): "ConfigMapList",
	})
	r := recorded{pods: make(chan watch.Event), claims: make(chan watch.Event)}
	for resource, at := range map[string]string{"pods": "10", "persistentvolumeclaims": "12"} {
		client.PrependReactor("list", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			list := &unstructured.UnstructuredList{Object: map[string]any{"kind": "List", "apiVersion": "v1"}}
			list.SetResourceVersion(at)
			return true, list, nil
		})
	}
	client.PrependReactor("create", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, object("ConfigMap", "mark", 20), nil
	})
	client.PrependReactor("delete", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, nil })
	watches := map[string]chan watch.Event{"pods": r.pods, "persistentvolumeclaims": r.claims}
	client.PrependWatchReactor("*", func(a clienttesting.Action) (bool, watch.Interface, error) {
		if watchPods != nil && a.GetResource() == pods {
			return true, watchPods(*a.(clienttesting.WatchActionImpl).ListOptions.TimeoutSeconds), nil
		}
		return true, watch.NewProxyWatcher(watches[a.GetResource().Resource]), nil
	})
	var err error
	r.Recorder, err = recording.Record(t.Context(), client, []string{namespace}, []recording.Scope{{Resource: pods}, {Resource: claims}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Stop)
	return r
}

func object(kind, name string, rv int) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"kind": kind, "apiVersion": "v1"}}
	u.SetNamespace(namespace)
	u.SetName(name)
	u.SetUID(types.UID("uid-of-" + name))
	u.SetResourceVersion(strconv.Itoa(rv))
	return u
}

// tell is a watch that tells of an object. It returns when the recorder has taken it.
func tell(c chan watch.Event, what watch.EventType, kind, name string, rv int) {
	c <- watch.Event{Type: what, Object: object(kind, name, rv)}
}

func syncOf(t *testing.T, r recorded, within time.Duration) (uint64, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	return r.Sync(ctx)
}

func TestRecorderMergesWhatItsWatchesTell(t *testing.T) {
	r := record(t)
	tell(r.claims, watch.Added, "PersistentVolumeClaim", "c", 14)
	tell(r.pods, watch.Added, "Pod", "early", 11) // before the claims were listed
	tell(r.pods, watch.Added, "Pod", "p", 13)
	tell(r.claims, watch.Deleted, "PersistentVolumeClaim", "c", 16)
	tell(r.pods, watch.Modified, "Pod", "p", 15)
	if _, err := syncOf(t, r, 100*time.Millisecond); err == nil {
		t.Error("a sync ended before the watches had passed the mark")
	}
	go tell(r.pods, watch.Bookmark, "Pod", "", 20)
	go tell(r.claims, watch.Added, "PersistentVolumeClaim", "d", 21)
	at, err := syncOf(t, r, time.Minute)
	if err != nil || at != 20 {
		t.Fatalf("synced to %d: %v", at, err)
	}
	h, err := r.History()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range h.Events {
		got = append(got, strconv.FormatUint(e.RV, 10)+" "+string(e.Type)+" "+e.Key.Name)
	}
	if s := strings.Join(got, ", "); s != "13 added p, 14 added c, 15 modified p, 16 deleted c" {
		t.Errorf("got %s", s)
	}
	if h.Origin != 12 || h.Complete != 20 || len(h.Initial) != 1 {
		t.Errorf("from %d to %d, with %d objects", h.Origin, h.Complete, len(h.Initial))
	}
}

// A watch that should tell how far it is may end before it has done so, and others may never be silent meanwhile.
func TestRecorderAsksUntilItIsTold(t *testing.T) {
	type podWatch struct {
		*watch.FakeWatcher

		seconds int64
	}
	watches := make(chan podWatch, 8)
	r := recordWith(t, func(seconds int64) watch.Interface {
		w := podWatch{watch.NewFake(), seconds}
		watches <- w
		return w
	})
	rest := <-watches
	synced := make(chan error, 1)
	go func() {
		_, err := syncOf(t, r, time.Minute)
		synced <- err
	}()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for rv := 21; ; rv++ {
			select {
			case r.claims <- watch.Event{Type: watch.Modified, Object: object("PersistentVolumeClaim", "c", rv)}:
			case <-stop:
				return
			}
		}
	}()
	first := <-watches
	first.Stop()
	second := <-watches
	if first.seconds <= 2 || second.seconds <= first.seconds || second.seconds >= rest.seconds {
		t.Errorf("watches live %d s, when asked %d s, when asked again %d s", rest.seconds, first.seconds, second.seconds)
	}
	second.Action(watch.Bookmark, object("Pod", "", 20))
	if err := <-synced; err != nil {
		t.Error(err)
	}
}

func TestRecorderFailsLoudly(t *testing.T) {
	for name, spoil := range map[string]func(r recorded){
		"a gap": func(r recorded) {
			status := apierrors.NewResourceExpired("too old").Status()
			r.pods <- watch.Event{Type: watch.Error, Object: &status}
		},
		"time goes back": func(r recorded) {
			tell(r.pods, watch.Added, "Pod", "p", 15)
			tell(r.pods, watch.Added, "Pod", "q", 14)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := record(t)
			spoil(r)
			if _, err := syncOf(t, r, time.Minute); err == nil || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("sync ended with %v", err)
			}
			_, err := r.History()
			if err == nil {
				t.Error("there is a history all the same")
			}
			if name == "a gap" && !apierrors.IsResourceExpired(err) {
				t.Errorf("the error hides why: %v", err)
			}
		})
	}
}
