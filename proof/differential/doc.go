// Package differential compares cairn with the controllers of kube-controller-manager. Random programs edit, scale and
// disturb the same workloads in two namespaces of one API server. cairn serves one namespace, the upstream controllers
// serve the other. Whenever both are at rest, cairn must not have fewer available pods, fewer updated pods or fewer
// claims.
//
// program.go has the programs, world.go applies them and compares.
package differential
