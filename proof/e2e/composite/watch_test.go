package composite

import (
	"context"
	"fmt"
	"strings"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file watches what happens on the way.

// event waits for an event about a parent.
func (l *lab) event(about *unstructured.Unstructured, reason, text string) {
	l.Helper()
	l.eventually("wait for an event "+reason, func() error {
		var list eventsv1.EventList
		if err := l.List(l.Context(), &list); err != nil {
			return err
		}
		var seen []string
		for _, e := range list.Items {
			if e.Regarding.UID != about.GetUID() {
				continue
			}
			if e.Reason == reason && strings.Contains(e.Note, text) {
				return nil
			}
			seen = append(seen, e.Reason+": "+e.Note)
		}
		return fmt.Errorf("there is none with %q among %q", text, seen)
	})
}

// least watches the parent's pods from now on, every event in the order of the store, and returns a function that ends
// that and tells the smallest number of pods that were ready at a time.
func (l *lab) least(set *unstructured.Unstructured) func() int {
	l.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(l.Context()))
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(podKind.GroupVersion().WithKind("PodList"))
	must(l, l.List(ctx, list, client.InNamespace(l.namespace)))
	w, err := l.Watch(ctx, list, client.InNamespace(l.namespace), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}})
	if err != nil {
		l.Fatal(err)
	}
	serving := map[string]bool{}
	for i := range list.Items {
		if pod := &list.Items[i]; metav1.IsControlledBy(pod, set) && ready(pod) {
			serving[pod.GetName()] = true
		}
	}
	least := len(serving)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range w.ResultChan() {
			pod, ok := e.Object.(*unstructured.Unstructured)
			if !ok || !metav1.IsControlledBy(pod, set) {
				continue
			}
			if delete(serving, pod.GetName()); e.Type != watch.Deleted && ready(pod) {
				serving[pod.GetName()] = true
			}
			least = min(least, len(serving))
		}
	}()
	return func() int {
		cancel()
		w.Stop()
		<-done
		return least
	}
}

func ready(pod *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(pod.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(m); ok && c["type"] == "Ready" {
			return c["status"] == "True" && pod.GetDeletionTimestamp() == nil
		}
	}
	return false
}
