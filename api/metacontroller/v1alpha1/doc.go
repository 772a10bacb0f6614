// Package v1alpha1 holds the API of Metacontroller, group metacontroller.k8s.io, as it is stored in the API server:
// CompositeController, DecoratorController and ControllerRevision, every field under the name that Metacontroller gave
// it, so that its objects can be taken over in place and given back.
//
// What cairn adds is marked "cairn only" at each field: limits of a rollout, the length of a history, the number of a
// revision, conditions. Metacontroller ignores these fields, and loses revision when it writes a ControllerRevision.
//
// The CRDs in deploy/crds are generated from here ("make generate"). They accept what Metacontroller's own accept, with
// one exception: what Metacontroller takes and then fails on for ever, such as a webhook without an address, is refused
// with a sentence that says what is missing.
//
// What may not come in: types of hook requests and responses, which nobody stores; behaviour, beyond what a field that
// was left out stands for.
//
// +groupName=metacontroller.k8s.io
// +kubebuilder:object:generate=true
package v1alpha1
