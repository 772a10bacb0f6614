// Package deploy holds what is installed in a cluster: CRDs (crds/, generated from package api) and roles. The
// manager's Deployment and admission policies are not there yet.
//
// It has the manifests, embedded so that the command line can print them and tests can run under exactly the roles that
// are shipped; and the roles of one CompositeController or DecoratorController, which are a function of what it lists.
//
// What may not come in: a client, any other package of ours than api, a permission that no controller needs.
package deploy
