// Package recording takes down what happened to a cluster: every change of the objects involved ([Recorder]) as one
// linear [History], and who wrote what, from the API server's audit log ([ParseAudit]) or from the client of the
// controller itself ([Wire]), which [History.Attach] joins to it. pass.go is what no object shows.
//
// What may not come in: a kind, a rule, and what anything of it means.
package recording
