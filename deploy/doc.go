// Package deploy is the room for what goes into a cluster: CRDs (crds/, generated from package api), roles, admission
// policies and the manager's Deployment.
//
// What is in the room: manifests, embedded so that the command line can print them and tests can run under exactly the
// roles that are shipped.
//
// What may not come in: logic, a client, any other package of ours, a permission that no controller needs.
package deploy
