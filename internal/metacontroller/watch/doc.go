// Package watch reads and watches an API server whose kinds come and go: its resources, their objects, and which events
// enqueue which parents.
//
// server.go is one API server as one manager sees it. It finds resources by their names (resource.go), holds informers of
// any kind that can be removed (informers.go, source.go), notices when a kind cannot be watched any more (ended.go, probe.go), and
// has a client that forgets what was served (renewed.go). On top of that are related objects, which a customize hook
// chooses (related.go, kinds.go, interests.go, rules.go), requeues without an event (resync.go), and the Secrets that hooks
// refer to (secrets.go, single.go).
//
// What may not come in: which controllers there are and whether they run (package host), what a pass does.
package watch
