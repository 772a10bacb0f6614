// Package parents tells the rules of package check what each kind of parent is. Where pods belong, what is available
// and what a template means with its defaults is asked of upstream's code, never of cairn's.
//
// A kind is a file that fills in a [check.Kind], and its name in BuiltIn. Composite is for parents whose children a
// hook describes. pods.go and counters.go are what several have in common.
//
// What may not come in: a rule, and what package kinds says already.
package parents

import "github.com/cairn-dev/cairn/proof/check"

// BuiltIn are the kinds that Kubernetes has.
func BuiltIn() []check.Kind {
	return []check.Kind{DaemonSet(), StatefulSet(), ReplicaSet(), ReplicationController(), CronJob()}
}
