// Package manager runs cairn's controllers in one controller-runtime manager: the same for a cluster, for the sandbox
// and for tests. It knows which controllers exist and what they share: client, cache, leader election, probes, metrics,
// and on which API servers they start.
//
// What may not come in: anything a controller decides. A new controller is one line in the registry.
package manager
