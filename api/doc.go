// Package api is the parent of the packages of types that are stored in an API server: one folder for each group and
// version: Metacontroller's metacontroller.k8s.io/v1alpha1, and our own cairn.dev/v1alpha1.
//
// They hold types with their markers, from which "make generate" writes deep copies and the CRDs in deploy/crds;
// defaults; constants that are part of the contract, such as labels and annotations.
//
// What may not come in: behaviour, a client, any other package of ours. A type that somebody has stored is a promise:
// a field may be added, never renamed or given another meaning.
package api
