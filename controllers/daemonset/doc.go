// Package daemonset is the DaemonSet controller: apps/v1 as its users know it, with cairn's history, ownership and
// rollout underneath. It replaces the built-in controller and hands over to it and back without touching a pod.
//
// controller.go wires it to a manager and runs one pass; gather.go holds all reads; place.go says where pods belong;
// plan.go decides, purely; template.go builds pods; act.go holds all writes; status.go reports.
//
// What may not come in: a read outside gather.go, a write outside act.go and status.go, a decision outside plan.go and
// place.go.
package daemonset
