// Package v1alpha1 holds cairn's own API, group cairn.dev: HistoryPolicy, which gives objects of any kind a revision
// history although their controller keeps none.
//
// The CRD in deploy/crds is generated from here ("make generate").
//
// What may not come in: behaviour, beyond what a field that was left out stands for.
//
// +groupName=cairn.dev
// +kubebuilder:object:generate=true
package v1alpha1
