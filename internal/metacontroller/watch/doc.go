// Package watch sees an API server whose kinds come and go: what its resources are, what objects there are of them, and which
// events wake whom.
//
// server.go is one API server as one manager sees it. It finds resources by the name that people write (resource.go), holds
// informers of any kind that can be let go of (informers.go, source.go), notices when a kind cannot be watched any more
// (probe.go), and has a client that forgets what was served (renewed.go). On top of that stand related objects, which a
// customize hook chooses (related.go, kinds.go, interests.go, rules.go), being woken although nothing happened (resync.go),
// and the Secrets that hooks refer to (secrets.go, single.go).
//
// What may not come in: which controllers there are and whether they run (package host), what a pass does.
package watch
