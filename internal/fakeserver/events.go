package fakeserver

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// This file is the field selectors that users of the fake client here ask with: events by their type and the object
// that they are about. An API server answers it.

// EventsByObject has the client that b builds answer lists of events by involvedObject.uid and type.
func EventsByObject(b *fake.ClientBuilder) *fake.ClientBuilder {
	return b.WithIndex(&corev1.Event{}, "involvedObject.uid", func(o client.Object) []string {
		event, ok := o.(*corev1.Event)
		if !ok {
			return nil
		}
		return []string{string(event.InvolvedObject.UID)}
	}).WithIndex(&corev1.Event{}, "type", func(o client.Object) []string {
		event, ok := o.(*corev1.Event)
		if !ok {
			return nil
		}
		return []string{event.Type}
	})
}
